// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unpack returns the regular files of an archive, and checks that root owns them and that they have no time.
func unpack(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		require.Zero(t, header.Uid+header.Gid, header.Name)
		require.LessOrEqual(t, header.ModTime.Unix(), int64(0), header.Name)
		if header.Typeflag == tar.TypeReg {
			data, err := io.ReadAll(reader)
			require.NoError(t, err)
			files[header.Name] = data
		}
	}
}

func TestBaseHasAuthoritiesZonesAndAUser(t *testing.T) {
	r := release{root: "."}
	goroot, err := r.goTool(t.Context(), serverPlatforms()[0], "env", "GOROOT")
	require.NoError(t, err)
	files, err := base(filepath.Join(goroot, "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	packed, err := tarball(files)
	require.NoError(t, err)
	content := unpack(t, strings.NewReader(string(packed)))

	authorities := 0
	for rest := content["etc/ssl/certs/ca-certificates.crt"]; ; authorities++ {
		block, after := pem.Decode(rest)
		if block == nil {
			require.Empty(t, after)
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.True(t, certificate.IsCA, certificate.Subject)
		rest = after
	}
	require.Greater(t, authorities, 100)

	berlin, err := time.LoadLocationFromTZData("Europe/Berlin", content["usr/share/zoneinfo/Europe/Berlin"])
	require.NoError(t, err)
	require.Equal(t, "13:00", time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC).In(berlin).Format("15:04"))
	require.Contains(t, string(content["etc/passwd"]), "nonroot:x:65532:65532:")
}

func TestTarballHasDirectoriesBeforeTheirFiles(t *testing.T) {
	packed, err := tarball([]file{
		{name: "b/c/d", mode: 0o644, data: []byte("1")}, {name: "a", mode: 0o755}, {name: "tmp/", mode: 0o1777},
	})
	require.NoError(t, err)
	var names []string
	var modes []int64
	for reader := tar.NewReader(strings.NewReader(string(packed))); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names, modes = append(names, header.Name), append(modes, header.Mode)
	}
	require.Equal(t, []string{"a", "b/", "b/c/", "b/c/d", "tmp/"}, names)
	require.Equal(t, []int64{0o755, 0o755, 0o755, 0o644, 0o1777}, modes)
}

func TestMaterialsNameTheModules(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(self)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, dependency := range info.Deps {
		found[moduleComponent(dependency).PackageURL] = true
	}
	require.NotEmpty(t, found)
	for url := range found {
		require.Regexp(t, `^pkg:golang/[a-z0-9./_~-]+@v[0-9][^+]*$`, url)
	}
	require.Equal(t, "pkg:golang/github.com/burntsushi/toml@v2.0.0%2Bincompatible",
		packageURL("github.com/BurntSushi/toml", "v2.0.0+incompatible"))
}

func TestPluginsAreBuiltForPeoplesMachines(t *testing.T) {
	require.Equal(t, []platform{{"linux", "amd64"}, {"linux", "arm64"}}, platforms("adapter"))
	require.Contains(t, platforms("kubectl-pap"), platform{"darwin", "arm64"})
	windows := binary{program: "kubectl-pap", platform: platform{"windows", "amd64"}}
	require.Equal(t, "kubectl-pap-windows-amd64.exe", windows.name())
}

func TestNotesAreOfTheVersion(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- New.\n\n### Fixed\n\n- Old.\n\n## [1.1.0] - 2026-10-01\n\n- First.\n\n## v1.0.0\n"
	tests := map[string]struct{ version, want, wrong string }{
		"a released version":                 {"v1.1.0", "- First.\n", ""},
		"a pre-release has the unreleased":   {"v1.2.0-rc.1", "- New.\n\n### Fixed\n\n- Old.\n", ""},
		"a release has a heading":            {"v1.2.0", "", `CHANGELOG.md has no section with text for v1.2.0: write its changes below a heading "## v1.2.0"`},
		"a heading without text is no notes": {"v1.0.0", "", "no section with text for v1.0.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := notes(changelog, test.version)
			if test.wrong != "" {
				require.ErrorContains(t, err, test.wrong)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, text)
		})
	}
}

func TestLinksOfNotesLeadToTheTree(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"pages":         {"[a](docs/a.md) or [b](B.md)", "[a](https://x.org/v1/docs/a.md) or [b](https://x.org/v1/B.md)"},
		"a part of one": {"[a](docs/a.md#b)", "[a](https://x.org/v1/docs/a.md#b)"},
		"another site":  {"[a](https://example.org/a)", "[a](https://example.org/a)"},
		"the same page": {"[a](#a)", "[a](#a)"},
		"no link":       {"a (docs/a.md)", "a (docs/a.md)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, withAbsoluteLinks(test.text, "https://x.org/v1"))
		})
	}
}

func TestATarballHasItsEnd(t *testing.T) {
	packed, err := tarball([]file{{name: "a", mode: 0o644, data: []byte("text")}})
	require.NoError(t, err)
	const header, content, end = 512, 512, 1024
	require.Len(t, packed, header+content+end)
	require.Equal(t, make([]byte, end), packed[header+content:])
}

// TestTheChartOfThisCheckoutCanBeReleased: it has the lines that a release sets.
func TestTheChartOfThisCheckoutCanBeReleased(t *testing.T) {
	r := release{root: filepath.Join("..", ".."), version: "v1.2.3", registry: "registry.example.org/scaling"}
	_, err := r.chart(map[string]string{"adapter": "sha256:a", "scaler": "sha256:b"}, "")
	require.NoError(t, err)
	_, err = r.chart(map[string]string{"another": "sha256:c"}, "")
	require.ErrorContains(t, err, "values.yaml must have the line")
}

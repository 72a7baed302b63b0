// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// plugins are the files of the plugin for Linux and Windows.
func plugins(t *testing.T) map[string][]byte {
	t.Helper()
	root := t.TempDir()
	program := filepath.Join(root, "built")
	require.NoError(t, os.WriteFile(program, []byte("a program"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "LICENSE"), []byte("a licence\n"), 0o600))
	info := &debug.BuildInfo{Main: debug.Module{Path: "example.com/hello"}}
	of := func(name, system string) binary {
		return binary{program: name, platform: platform{system, "amd64"}, path: program, info: info}
	}
	r := release{root: root, version: "v1.2.3"}
	files, err := r.krew([]binary{of("adapter", "linux"), of("kubectl-pap", "linux"), of("kubectl-pap", "windows")})
	require.NoError(t, err)
	return files
}

func TestKrewInstallsThePlugin(t *testing.T) {
	files := plugins(t)
	require.Equal(t, []string{"kubectl-pap-linux-amd64.tar.gz", "kubectl-pap-windows-amd64.tar.gz", "pap.krew.yaml"},
		slices.Sorted(maps.Keys(files)))

	decoder := yaml.NewDecoder(bytes.NewReader(files["pap.krew.yaml"]))
	decoder.KnownFields(true)
	var manifest krewManifest
	require.NoError(t, decoder.Decode(&manifest))
	require.Equal(t, "pap", manifest.Metadata["name"])
	require.Equal(t, "v1.2.3", manifest.Spec.Version)
	require.LessOrEqual(t, len(manifest.Spec.ShortDescription), 50, "krew's own limit")
	require.Len(t, manifest.Spec.Platforms, 2)
	for i, bin := range []string{"kubectl-pap", "kubectl-pap.exe"} {
		p := manifest.Spec.Platforms[i]
		require.Equal(t, bin, p.Bin)
		archive := files["kubectl-pap-"+p.Selector.MatchLabels["os"]+"-amd64.tar.gz"]
		sum := sha256.Sum256(archive)
		require.Equal(t, hex.EncodeToString(sum[:]), p.SHA256)
		require.Equal(t, "https://example.com/hello/releases/download/v1.2.3/kubectl-pap-"+
			p.Selector.MatchLabels["os"]+"-amd64.tar.gz", p.URI)
		unzipped, err := gzip.NewReader(bytes.NewReader(archive))
		require.NoError(t, err)
		require.Equal(t, "a program", string(unpack(t, unzipped)[bin]))
	}
}

// TestKrewTakesTheManifest runs the validator of krew's own index, without the installation, which downloads.
func TestKrewTakesTheManifest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the validator")
	}
	path := filepath.Join(t.TempDir(), "pap.yaml") // as krew's index names it
	require.NoError(t, os.WriteFile(path, plugins(t)["pap.krew.yaml"], 0o600))
	validator := exec.CommandContext(t.Context(),
		"go", "tool", "validate-krew-manifest", "-skip-install", "-manifest", path)
	validator.Dir = filepath.Join("..", "krew")
	out, err := validator.CombinedOutput()
	require.NoError(t, err, string(out))
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/stretchr/testify/require"
)

// archive is a tar archive of files.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	require.NoError(t, writer.WriteHeader(&tar.Header{Name: "folder/", Typeflag: tar.TypeDir, Mode: 0o755}))
	for name, text := range files {
		require.NoError(t, writer.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644}))
		_, err := writer.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	return out.String()
}

func compressed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	writer := brotli.NewWriter(&out)
	_, err := writer.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return out.String()
}

// tarball writes a package with the given program.
func tarball(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, err := writer.Write([]byte(archive(t, files)))
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	path := filepath.Join(t.TempDir(), "package.tgz")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

func contents(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"package/README.md":         "no part of it",
		"package/bin/chromium.br":   compressed(t, "#!/bin/sh\necho \"$LD_LIBRARY_PATH $FONTCONFIG_FILE $1\"\n"),
		"package/bin/al2023.tar.br": compressed(t, archive(t, map[string]string{"lib/libnss3.so": "a library"})),
		"package/bin/fonts.tar.br":  compressed(t, archive(t, map[string]string{"fonts/Sans/../../Sans.ttf": "a font"})),
	}
}

func TestUnpackedProgramStartsWithItsLibrariesAndFontsWhereverItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "partial")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, unpack(tarball(t, contents(t)), dir))
	moved := filepath.Join(t.TempDir(), "with a space")
	require.NoError(t, os.Rename(dir, moved))

	t.Setenv("LD_LIBRARY_PATH", "/mine")
	out, err := exec.CommandContext(t.Context(), filepath.Join(moved, launcher), "--version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, moved+"/lib:/mine "+moved+"/fonts/fonts.conf --version\n", string(out))
	for name, want := range map[string]string{"lib/libnss3.so": "a library", "fonts/Sans.ttf": "a font"} {
		text, err := os.ReadFile(filepath.Join(moved, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoFileExists(t, filepath.Join(moved, "README.md"))
}

func TestUnpackRefusesAnotherPackage(t *testing.T) {
	for name, test := range map[string]struct {
		change func(files map[string]string)
		err    string
	}{
		"without libraries": {
			func(files map[string]string) { delete(files, "package/bin/al2023.tar.br") },
			"it lacks map[package/bin/al2023.tar.br:lib]",
		},
		"that is not compressed": {func(files map[string]string) { files["package/bin/chromium.br"] = "text" }, "package/bin/chromium.br: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			files := contents(t)
			test.change(files)
			require.ErrorContains(t, unpack(tarball(t, files), t.TempDir()), test.err)
		})
	}
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("<html>"), 0o600))
	require.ErrorContains(t, unpack(text, t.TempDir()), "reading the package")
}

func TestVerifyComparesTheWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "package.tgz")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	const abc = "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw=="
	require.NoError(t, verify(path, abc))
	require.ErrorContains(t, verify(path, integrity), "not the pinned one")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/pulsar-autoscaler/pulsar-autoscaler/"

// listed is what `go list` says about a package.
type listed struct {
	ImportPath string   `json:"ImportPath"`
	Name       string   `json:"Name"`
	Dir        string   `json:"Dir"`
	Imports    []string `json:"Imports"`
	Deps       []string `json:"Deps"`
	GoFiles    []string `json:"GoFiles"`
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	vague := []string{"util", "utils", "common", "helpers", "types", "pkg", "misc"}
	for path, p := range list(t) {
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		require.NotContains(t, vague, p.Name, "%s: a package is a noun its user knows", path)
		require.True(t, slices.Contains(p.GoFiles, "doc.go"), "%s has no doc.go: its job, its layer, what it never does",
			path)
	}
}

func list(t *testing.T) map[string]listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps=false",
		"-json=ImportPath,Name,Dir,Imports,Deps,GoFiles", "./...")
	command.Dir = rootDir(t)
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		require.NoError(t, err, string(failed.Stderr))
	}
	require.NoError(t, err)
	packages := map[string]listed{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages[p.ImportPath] = p
	}
}

// rootDir is two folders up from this test.
func rootDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return dir
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const good = "echo Chromium 153.0.8010.0"

// command writes a shell script and returns its path.
func command(t *testing.T, dir, name, script string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return path
}

func TestFindTakesTheFirstBrowserThatRuns(t *testing.T) {
	for name, test := range map[string]struct {
		installed map[string]string // scripts in PATH
		chrome    string            // the script of $CHROME
		first     string            // the script of the first way that brings one; none fails
		want, err string
	}{
		"takes $CHROME first":          {chrome: good, installed: map[string]string{"chromium": good}, want: "chosen"},
		"refuses a $CHROME that fails": {chrome: "exit 1", first: good, err: "$CHROME: "},
		"takes an installed one": {
			installed: map[string]string{"headless-shell": good}, first: good, want: "headless-shell",
		},
		"brings one without one installed": {first: good, want: "first"},
		"skips one that fails": {
			installed: map[string]string{"chromium": "exit 1", "chromium-browser": "echo install the snap", "google-chrome": good},
			want:      "google-chrome",
		},
		"brings one for one that fails":      {installed: map[string]string{"chromium": "exit 1"}, first: good, want: "first"},
		"takes the next way if one fails":    {want: "second"},
		"takes the next way if it is broken": {first: "exit 127", want: "second"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := t.TempDir(), t.TempDir()
			t.Setenv("PATH", path)
			t.Setenv(Variable, "")
			if test.chrome != "" {
				t.Setenv(Variable, command(t, dir, "chosen", test.chrome))
			}
			for name, script := range test.installed {
				command(t, path, name, script)
			}
			first := func(context.Context, io.Writer) (string, error) {
				if test.first == "" {
					return "", errors.New("the registry is down")
				}
				return command(t, dir, "first", test.first), nil
			}
			second := func(context.Context, io.Writer) (string, error) { return command(t, dir, "second", good), nil }
			got, err := find(t.Context(), nil, installed, first, second)
			if test.err != "" {
				require.ErrorIs(t, err, ErrNoBrowser)
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, filepath.Base(got))
		})
	}
}

func TestFindSaysWhatItTriedAndWhatToInstall(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv(Variable, "")
	require.NoError(t, os.Symlink(os.DevNull, filepath.Join(dir, "chromium")), "it is in PATH and no program")
	fails := func(context.Context, io.Writer) (string, error) { return "", errors.New("the registry is down") }
	_, err := find(t.Context(), nil, installed, fails)
	require.ErrorIs(t, err, ErrNoBrowser)
	for _, want := range []string{
		"none is in PATH", "the registry is down", "apt-get install chromium", "snap install", "dnf install", "brew install",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestFindEndsWithItsContext(t *testing.T) {
	t.Setenv(Variable, "")
	ctx, cancel := context.WithCancel(t.Context())
	stops := func(context.Context, io.Writer) (string, error) { cancel(); return "", context.Canceled }
	never := func(context.Context, io.Writer) (string, error) { t.Error("a way after the end"); return "", nil }
	_, err := find(ctx, nil, stops, never)
	require.ErrorIs(t, err, context.Canceled)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package python

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindSaysWhatToInstall(t *testing.T) {
	for name, test := range map[string]struct{ script, err string }{
		"without python3":   {err: "executable file not found"},
		"without ensurepip": {script: "echo ModuleNotFoundError: ensurepip >&2; exit 1", err: "says ModuleNotFoundError: ensurepip"},
		"without a reason":  {script: "exit 3", err: "says exit status 3"},
		"with another text": {script: "echo hello", err: `says "hello\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			if test.script != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\n"+test.script+"\n"), 0o700))
			}
			_, err := Find(t.Context())
			require.ErrorIs(t, err, ErrNoPython)
			for _, want := range []string{
				test.err, "Python 3.9", "apt-get install python3 python3-venv", "dnf install python3", "brew install python",
			} {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestFindReadsThePathAndTheTag(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	const script = "#!/bin/sh\necho /opt/python3\necho cpython-311\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o700))
	found, err := Find(t.Context())
	require.NoError(t, err)
	require.Equal(t, Python{Path: "/opt/python3", Tag: "cpython-311"}, found)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckNamesWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		errs   []string
	}{
		"iproute2":         {errs: []string{"apt-get install iproute2", "dnf install iproute"}},
		"rights":           {script: "echo 'Operation not permitted'; exit 2", errs: []string{"sysctl -w"}},
		"kernel modules":   {script: "echo 'Error: Unknown device type.'; exit 2", errs: []string{"modprobe -a bridge veth"}},
		"something else":   {script: "echo 'a new complaint'; exit 2", errs: []string{"a new complaint", "exit status 2"}},
		"nothing is wrong": {script: "cat >&2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.script != "" {
				script := "#!/bin/sh\nPATH=/bin:/usr/bin\n" + test.script + "\n"
				require.NoError(t, os.WriteFile(filepath.Join(dir, "ip"), []byte(script), 0o700))
			}
			t.Setenv("PATH", dir)
			err := checkMachine(t.Context())
			if len(test.errs) == 0 {
				require.NoError(t, err)
			}
			for _, want := range test.errs {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostTracked is several times the largest picture in docs: what is larger was built, and everybody who clones would
// fetch it for ever.
const mostTracked = 512 << 10

func TestNothingThatWasBuiltIsTracked(t *testing.T) {
	root := rootDir(t)
	command := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	command.Dir = root
	names, err := command.Output()
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		info, err := os.Lstat(filepath.Join(root, string(name)))
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(mostTracked), "%s: keep it out of git, in bin/ or outside the tree", name)
	}
}

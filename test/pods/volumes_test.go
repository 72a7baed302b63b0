// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilesOfAVolumeChangeAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	for _, files := range []map[string][]byte{
		{"tls.crt": []byte("one"), "tls.key": []byte("one")}, {"tls.crt": []byte("two"), "tls.key": []byte("two")},
	} {
		require.NoError(t, publish(dir, files))
		before, err := os.Readlink(filepath.Join(dir, "..data"))
		require.NoError(t, err)
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		require.NoError(t, publish(dir, files))
		after, err := os.Readlink(filepath.Join(dir, "..data"))
		require.NoError(t, err)
		require.Equal(t, before, after, "the same files are not written again")
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4, "the files, ..data and its directory")
}

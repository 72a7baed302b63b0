// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKEDAIsPinnedAndStamped(t *testing.T) {
	root, err := buildDir()
	require.NoError(t, err)
	keda := kedaModule()
	version, _, err := keda.pinned(filepath.Join(root, keda.dir))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(version, "v2."), version)
	require.NotContains(t, keda.linker(version), "Version=v", "KEDA's releases call themselves 2.x.y")
}

func TestWhatIsBesideTheBinariesIsKeptWithThem(t *testing.T) {
	root, tiny := tinyModule(t, tinyProgram)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "config", "crd"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "config", "crd", "a.yaml"), []byte("a"), 0o600))
	tiny.pins, tiny.copies = "example.org/tiny", "config/crd"
	dir := t.TempDir()
	require.NoError(t, tiny.copyFiles(t.Context(), root, dir))
	content, err := os.ReadFile(filepath.Join(dir, "config", "crd", "a.yaml"))
	require.NoError(t, err)
	require.Equal(t, "a", string(content))
}

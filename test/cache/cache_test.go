// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestFillBuildsOnceAndReturnsTheSameDirectory(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	var builds atomic.Int32
	build := func(_ context.Context, dir string) error {
		builds.Add(1)
		return os.WriteFile(filepath.Join(dir, "tool"), []byte("v1"), 0o600)
	}
	var group errgroup.Group
	dirs := make([]string, 8)
	for i := range dirs {
		group.Go(func() (err error) {
			dirs[i], err = Fill(t.Context(), "tool-v1", nil, build)
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 1, builds.Load())
	for _, dir := range dirs {
		content, err := os.ReadFile(filepath.Join(dir, "tool"))
		require.NoError(t, err)
		require.Equal(t, "v1", string(content))
	}
}

func TestFillLeavesNothingBehindWhenTheBuildFails(t *testing.T) {
	base := t.TempDir()
	t.Setenv(Variable, base)
	broken := errors.New("no compiler")
	_, err := Fill(t.Context(), "tool-v1", nil, func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o600), broken)
	})
	require.ErrorIs(t, err, broken)

	dir, err := Fill(t.Context(), "tool-v1", nil, func(_ context.Context, dir string) error {
		left, err := os.ReadDir(dir)
		require.Empty(t, left)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(base, "tool-v1"), dir)
}

func TestFillStartsAfreshAfterABuilderWasKilled(t *testing.T) {
	base := t.TempDir()
	t.Setenv(Variable, base)
	require.NoError(t, os.MkdirAll(filepath.Join(base, "tool-v1.partial", "half"), 0o750))
	_, err := Fill(t.Context(), "tool-v1", nil, func(_ context.Context, dir string) error {
		left, err := os.ReadDir(dir)
		require.Empty(t, left)
		return err
	})
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(base, "tool-v1.partial"))
}

func TestFillSaysThatAnotherProcessBuildsAndGivesUpWithItsContext(t *testing.T) {
	base := t.TempDir()
	t.Setenv(Variable, base)
	unlock, err := lock(t.Context(), filepath.Join(base, "tool-v1.lock"), "tool-v1", &bytes.Buffer{})
	require.NoError(t, err)
	defer func() { require.NoError(t, unlock()) }()

	ctx, cancel := context.WithCancel(t.Context())
	progress := writer(func(line string) {
		require.Contains(t, line, "tool-v1 is being made by another process")
		cancel()
	})
	_, err = Fill(ctx, "tool-v1", progress, func(context.Context, string) error {
		return errors.New("built although another process holds the lock")
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestDirNamesTheVariableWhenItCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv(Variable, filepath.Join(file, "cache"))
	_, err := Dir()
	require.ErrorContains(t, err, "set "+Variable)
}

func TestAnnounceTellsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		err := Announce(t.Context(), &out, "building etcd", func(context.Context) error {
			time.Sleep(22 * time.Second)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, `building etcd
building etcd: 10s so far
building etcd: 20s so far
building etcd: done after 22s
`, out.String())
	})
}

type writer func(line string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

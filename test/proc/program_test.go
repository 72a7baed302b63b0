// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProgramIsLaunchedAgainAfterItsEnd(t *testing.T) {
	p := NewProgram(t.Context(), childConfig("worker"))
	p.Kill() // nothing runs yet
	require.Nil(t, p.Process())
	require.NoError(t, p.Launch())
	t.Cleanup(p.Kill)
	first := p.Process()
	require.NoError(t, p.Ended())
	p.Kill()
	require.ErrorContains(t, p.Ended(), "the process has ended")
	require.ErrorIs(t, p.Pause(), os.ErrProcessDone)

	require.NoError(t, p.Launch())
	require.NotSame(t, first, p.Process())
	require.NoError(t, p.Ended())
	require.NoError(t, p.Stop())
	<-p.Done()
}

func TestAProgramThatFailsSaysWhy(t *testing.T) {
	p := NewProgram(t.Context(), childConfig("failing"))
	require.NoError(t, p.Launch())
	<-p.Done()
	require.ErrorContains(t, p.Ended(), "exit status 3")
	require.Contains(t, p.LogTail(5), "the disk is full")
}

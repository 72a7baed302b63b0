// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheChildEndsWithItsParent(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run("after "+s.String(), func(t *testing.T) {
			parent := start(t, "parent")
			child := follower(t, parent)
			require.True(t, alive(t, child))
			require.NoError(t, syscall.Kill(parent.Pid(), s)) // the parent alone: the child has a group of its own
			<-parent.Done()
			require.Error(t, parent.Err())
			requireEnds(t, child)
		})
	}
}

// The kernel's parent-death signal follows the thread that forked.
func TestTheChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	thread, hold := make(chan int), make(chan struct{})
	t.Cleanup(func() { close(hold) })
	started := make(chan *Process, 1)
	var ask func()
	ask = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			go ask() // on another thread while this one is held, for the first of a process does not end
			<-hold
			return
		}
		p, err := Start(t.Context(), childConfig("worker"))
		if err != nil {
			t.Error(err)
		}
		started <- p
		thread <- syscall.Gettid()
	}
	go ask()
	p, task := <-started, fmt.Sprintf("/proc/self/task/%d", <-thread)
	require.NotNil(t, p)
	t.Cleanup(p.Kill)
	requireSays(t, p, "ready")
	require.Eventually(t, func() bool {
		_, err := os.Stat(task)
		return os.IsNotExist(err)
	}, patience, time.Millisecond, "the thread lives on")
	require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGUSR1))
	requireSays(t, p, "pong")
}

func TestAPausedChildIsStoppedForTheKernel(t *testing.T) {
	p := start(t, "worker")
	require.NoError(t, p.Pause())
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		require.NoError(t, err)
		return strings.Contains(string(stat), ") T ")
	}, patience, time.Millisecond, "the child is not stopped")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// roleVariable turns the test binary into a child of a test.
const roleVariable = "PULSAR_AUTOSCALER_PROC_TEST_ROLE"

// patience bounds waits for events that are immediate on an idle machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// play is the child's side. A role that stays prints "ready" once it can be signalled, and "pong" for each SIGUSR1.
func play(role string) error {
	pings := make(chan os.Signal, 1)
	switch role {
	case "worker":
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "failing":
		fmt.Println("the disk is full")
		os.Exit(3)
	case "talkative":
		for i := range 30000 {
			fmt.Println("line", i)
		}
		return nil
	case "leader", "leaving":
		follower := exec.CommandContext(context.Background(), os.Args[0])
		follower.Env = append(os.Environ(), roleVariable+"=stubborn")
		if err := follower.Start(); err != nil {
			return err
		}
		fmt.Println("follower", follower.Process.Pid)
		if role == "leaving" {
			return nil
		}
	case "parent":
		p, err := Start(context.Background(), childConfig("stubborn"))
		if err != nil {
			return err
		}
		fmt.Println("follower", p.Pid())
	default:
		return fmt.Errorf("no role %q", role)
	}
	signal.Notify(pings, syscall.SIGUSR1)
	fmt.Println("ready")
	for range pings {
		fmt.Println("pong")
	}
	return nil
}

func childConfig(role string) Config {
	return Config{Name: role, Path: os.Args[0], Env: []string{roleVariable + "=" + role}}
}

// start runs a role that stays, and returns when it can be signalled.
func start(t *testing.T, role string) *Process {
	t.Helper()
	p, err := Start(t.Context(), childConfig(role))
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	requireSays(t, p, "ready")
	return p
}

func requireSays(t *testing.T, p *Process, line string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains("\n"+p.LogTail(10)+"\n", "\n"+line+"\n")
	}, patience, time.Millisecond, "%s never said %q", p.Name(), line)
}

// alive reports whether a process runs; one that waits for init to reap it does not.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return syscall.Kill(pid, 0) == nil // no /proc on this system, or gone in between
	}
	return !strings.Contains(string(stat), ") Z ")
}

func requireEnds(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(t, pid) }, patience, time.Millisecond, "process %d lives on", pid)
}

// follower is the process id of the child's own child.
func follower(t *testing.T, p *Process) int {
	t.Helper()
	_, after, found := strings.Cut(p.LogTail(10), "follower ")
	require.True(t, found, "no follower in %q", p.LogTail(10))
	number, _, _ := strings.Cut(after, "\n")
	pid, err := strconv.Atoi(number)
	require.NoError(t, err)
	return pid
}

func TestStopEndsTheChildBySIGTERM(t *testing.T) {
	p := start(t, "worker")
	require.NoError(t, p.Err())
	require.NoError(t, p.Stop(patience))
	require.NoError(t, p.Err(), "an end that was asked for is no error")
	require.False(t, alive(t, p.Pid()))
	require.NoError(t, p.Stop(patience), "stopping again does nothing")
	p.Kill()
	require.ErrorIs(t, p.Pause(), os.ErrProcessDone)
	require.ErrorIs(t, p.Resume(), os.ErrProcessDone)
}

func TestStopKillsAChildThatIgnoresSIGTERM(t *testing.T) {
	p := start(t, "stubborn")
	err := p.Stop(10 * time.Millisecond)
	require.ErrorIs(t, err, ErrKilled)
	require.ErrorContains(t, err, "stopping stubborn: still running 10ms after SIGTERM")
	require.False(t, alive(t, p.Pid()))
}

func TestStopWithoutGraceKillsAtOnce(t *testing.T) {
	p := start(t, "stubborn")
	require.NoError(t, p.Stop(0))
	require.False(t, alive(t, p.Pid()))
}

func TestStopWorksOnAPausedChild(t *testing.T) {
	p := start(t, "worker")
	require.NoError(t, p.Pause())
	require.NoError(t, p.Stop(patience), "SIGTERM must reach a paused child")
	require.False(t, alive(t, p.Pid()))
}

func TestKillWorksOnAPausedChild(t *testing.T) {
	p := start(t, "worker")
	require.NoError(t, p.Pause())
	p.Kill()
	require.False(t, alive(t, p.Pid()))
}

func TestResumedChildGoesOn(t *testing.T) {
	p := start(t, "worker")
	require.NoError(t, p.Pause())
	require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGUSR1))
	require.NoError(t, p.Resume())
	requireSays(t, p, "pong")
}

func TestManyMayStopAtTheSameTime(t *testing.T) {
	p := start(t, "worker")
	var group errgroup.Group
	for range 8 {
		group.Go(func() error { return p.Stop(patience) })
	}
	require.NoError(t, group.Wait())
	require.False(t, alive(t, p.Pid()))
}

func TestErrTellsHowTheChildFailed(t *testing.T) {
	p, err := Start(t.Context(), childConfig("failing"))
	require.NoError(t, err)
	<-p.Done()
	var exit *exec.ExitError
	require.ErrorAs(t, p.Err(), &exit)
	require.Equal(t, 3, exit.ExitCode())
	require.ErrorContains(t, p.Err(), "failing: ")
	require.Equal(t, "the disk is full", p.LogTail(5))
}

func TestEndOfTheContextStopsTheChild(t *testing.T) {
	for _, role := range []string{"worker", "stubborn"} {
		t.Run(role, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			config := childConfig(role)
			config.Grace = 10 * time.Millisecond
			p, err := Start(ctx, config)
			require.NoError(t, err)
			t.Cleanup(p.Kill)
			requireSays(t, p, "ready")
			cancel()
			<-p.Done()
			require.NoError(t, p.Err())
			require.False(t, alive(t, p.Pid()))
		})
	}
}

func TestTheWholeFamilyEnds(t *testing.T) {
	t.Run("when the child is killed", func(t *testing.T) {
		p := start(t, "leader")
		p.Kill()
		requireEnds(t, follower(t, p))
	})
	t.Run("when the child is stopped and its own child will not", func(t *testing.T) {
		p := start(t, "leader")
		require.NoError(t, p.Stop(patience))
		requireEnds(t, follower(t, p))
	})
	t.Run("when the child ends by itself", func(t *testing.T) {
		p, err := Start(t.Context(), childConfig("leaving"))
		require.NoError(t, err)
		<-p.Done()
		require.NoError(t, p.Err())
		requireEnds(t, follower(t, p))
	})
}

func TestStartRefuses(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		ctx    context.Context //nolint:containedctx // one of the arguments of a case
		config Config
		says   string
	}{
		"an executable that is absent": {
			t.Context(),
			Config{Name: "etcd", Path: "/nowhere/etcd"},
			"starting etcd: fork/exec /nowhere/etcd: no such file",
		},
		"a log that cannot be written": {
			t.Context(),
			Config{Name: "etcd", Path: os.Args[0], LogPath: "/nowhere/log"},
			"opening the log of etcd",
		},
		"a context that has ended": {ended, childConfig("worker"), "starting worker: context canceled"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := Start(test.ctx, test.config)
			require.ErrorContains(t, err, test.says)
			require.Nil(t, p)
		})
	}
}

func TestLogTailShowsThisRunOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "child.log")
	require.NoError(t, os.WriteFile(path, []byte("an earlier run\n"), 0o600))
	config := childConfig("failing")
	config.LogPath = path
	p, err := Start(t.Context(), config)
	require.NoError(t, err)
	<-p.Done()
	require.Equal(t, "the disk is full", p.LogTail(100))
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "an earlier run\nthe disk is full\n", string(log))
}

func TestLogTailIsBounded(t *testing.T) {
	p, err := Start(t.Context(), childConfig("talkative"))
	require.NoError(t, err)
	<-p.Done()
	require.Equal(t, "line 29998\nline 29999", p.LogTail(2))
	require.Empty(t, p.LogTail(0))
	all := p.LogTail(30000)
	require.LessOrEqual(t, len(all), tailBytes)
	first, _, _ := strings.Cut(all, "\n")
	require.Regexp(t, `^line \d+$`, first, "the first line must be whole")
}

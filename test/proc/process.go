// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// defaultGrace is the grace period of a child when its context ends. An API server with open watches needs about 1 s, a
// JVM broker up to 4 s.
const defaultGrace = 5 * time.Second

// ErrKilled means that SIGTERM was not enough, and SIGKILL ended the process.
var ErrKilled = errors.New("the process had to be killed")

// Config configures a child. Name and Path are required.
type Config struct {
	// Name is used in errors, e.g. "kube-apiserver".
	Name string
	// Path is the executable; a name without a slash is looked up in PATH.
	Path string
	// Args are the arguments without the program's own name.
	Args []string
	// Env entries ("KEY=value") are added to the environment of this process and override it.
	Env []string
	// Dir is the working directory; empty is the one of this process.
	Dir string
	// LogPath is the file for stdout and stderr, which are appended. Empty is an unlinked temporary file, for LogTail.
	LogPath string
	// Grace is the time between SIGTERM and SIGKILL after the context of Start ends; 0 is 5 s.
	Grace time.Duration
	// Isolate changes how the child is started, such as its namespaces; nil changes nothing.
	Isolate func(*syscall.SysProcAttr)
}

// Process is a started child. Its methods may be called from any goroutine, also after it has exited.
type Process struct {
	config Config
	cmd    *exec.Cmd
	pid    int
	log    *logFile
	done   chan struct{} // closed after the child was reaped and err was set
	err    error         // written before done is closed, read after

	mu      sync.Mutex // guards gone and stopped
	gone    bool       // the child was, or is about to be, reaped: its process id may be reused
	stopped bool       // an end was requested
}

// Start runs the child in its own process group, with stdin empty. When ctx ends the child is stopped as by Stop, so
// ctx must live as long as the child. After an error nothing runs.
func Start(ctx context.Context, config Config) (*Process, error) {
	if config.Grace == 0 {
		config.Grace = defaultGrace
	}
	log, err := openLog(config.LogPath)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", config.Name, err)
	}
	p := &Process{config: config, log: log, done: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, config.Path, config.Args...)
	p.cmd.Env = append(os.Environ(), config.Env...)
	p.cmd.Dir = config.Dir
	p.cmd.Stdout, p.cmd.Stderr = log.file, log.file
	p.cmd.SysProcAttr = attributes()
	if config.Isolate != nil {
		config.Isolate(p.cmd.SysProcAttr)
	}
	p.cmd.Cancel = p.terminate
	p.cmd.WaitDelay = config.Grace

	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", config.Name, err), log.file.Close())
	}
	return p, nil
}

// run forks the child and waits for it on one OS thread: the kernel sends the parent-death signal when the thread that
// forked ends, not when the process does, and the Go runtime ends idle threads. The thread is never unlocked, so the
// runtime ends it together with this goroutine, when the child is gone.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	if err == nil {
		p.pid = p.cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	exitErr := p.wait()
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if exitErr != nil && !stopped {
		p.err = fmt.Errorf("%s: %w", p.config.Name, exitErr)
	}
	close(p.done)
}

// wait returns when the child and the rest of its group have ended.
func (p *Process) wait() error {
	// Until the child is reaped, its process id, and so the id of its group, is not reused.
	unreaped := awaitExit(p.pid)
	var err error
	if !unreaped {
		err = p.cmd.Wait()
	}
	p.mu.Lock()
	p.gone = true
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // ESRCH is normal: nothing was left
	p.mu.Unlock()
	if unreaped {
		err = p.cmd.Wait()
	}
	return err
}

// signal sends the signals to the whole process group.
func (p *Process) signal(stop bool, signals ...syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return fmt.Errorf("signalling %s: %w", p.config.Name, os.ErrProcessDone)
	}
	p.stopped = p.stopped || stop
	for _, s := range signals {
		if err := syscall.Kill(-p.pid, s); err != nil {
			return fmt.Errorf("sending %s to %s: %w", s, p.config.Name, err)
		}
	}
	return nil
}

// terminate sends SIGTERM to the group, and SIGCONT: a paused process sees SIGTERM only after it continues.
func (p *Process) terminate() error {
	return p.signal(true, syscall.SIGTERM, syscall.SIGCONT)
}

// Stop sends SIGTERM to the process group, waits up to grace and then sends SIGKILL; it returns when the process has
// ended. It works on a paused process and may be called again. The error is nil for a process that ended by itself or
// by SIGTERM and wraps ErrKilled if SIGKILL was needed; grace 0 kills at once, which is no error.
func (p *Process) Stop(grace time.Duration) error {
	if grace <= 0 || p.terminate() != nil {
		p.Kill()
		return nil
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("stopping %s: still running %s after SIGTERM: %w", p.config.Name, grace, ErrKilled)
	}
}

// Kill sends SIGKILL to the process group and returns when the process has ended. It works on a paused process and may
// be called again.
func (p *Process) Kill() {
	_ = p.signal(true, syscall.SIGKILL) // the only possible error is that it has ended
	<-p.done
}

// Pause stops the whole process group with SIGSTOP: its sockets stay open and do not respond, as on a frozen machine.
// The error wraps os.ErrProcessDone if the process has ended.
func (p *Process) Pause() error {
	return p.signal(false, syscall.SIGSTOP)
}

// Resume continues a paused process group. The error wraps os.ErrProcessDone if the process has ended.
func (p *Process) Resume() error {
	return p.signal(false, syscall.SIGCONT)
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} {
	return p.done
}

// Err is why the process ended by itself: nil while it runs, after exit status 0, and after an end requested by Stop,
// Kill or the context of Start; otherwise an error wrapping *exec.ExitError.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Name is Config.Name.
func (p *Process) Name() string { return p.config.Name }

// Pid is the process id of the child, which is the id of its process group too.
func (p *Process) Pid() int { return p.pid }

// LogTail returns the last n lines that this run of the child has printed, at most 64 KiB of them, or a note in
// brackets when the log cannot be read. It works while the child runs and after.
func (p *Process) LogTail(n int) string {
	return p.log.tail(n)
}

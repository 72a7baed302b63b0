// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	// stopGrace is the grace period: an instance closes its consumer and ends within 1 s.
	stopGrace = 10 * time.Second
	errLines  = 30
)

// Process is a replica of Java.
type Process struct {
	in        Instance
	completed func(Completion)
	url       string
	ready     chan struct{}
	once      sync.Once // closes ready
	done      chan struct{}
	cancel    context.CancelFunc // ends the delay before the start

	mu      sync.Mutex // guards the fields below
	stopped bool
	process *proc.Process // nil until the delay is over
	err     error
}

var _ Replica = (*Process)(nil)

func newProcess(in Instance, completed func(Completion), url string) *Process {
	return &Process{
		in: in, completed: completed, url: url,
		ready: make(chan struct{}), done: make(chan struct{}),
	}
}

// Ready is closed when the function is initialized, after it has subscribed.
func (p *Process) Ready() <-chan struct{} { return p.ready }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// MetricsURL is served once the replica is Ready.
func (p *Process) MetricsURL() string { return p.url }

// Err is why the process did not start or ended by itself, with the end of its log; nil otherwise.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Pid returns the id of the process, and false before it starts.
func (p *Process) Pid() (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return 0, false
	}
	return p.process.Pid(), true
}

// LogTail returns the last n lines of the process's output.
func (p *Process) LogTail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return ""
	}
	return p.process.LogTail(n)
}

// connected is called by the collector when the function is initialized.
func (p *Process) connected() (report func(Completion)) {
	p.once.Do(func() { close(p.ready) })
	return func(done Completion) {
		done.Instance = p.in.ID
		p.completed(done)
	}
}

// run is the lifetime of the replica; ctx ends the start delay.
func (p *Process) run(ctx context.Context, launch func() (*proc.Process, error)) {
	defer close(p.done)
	defer p.cancel()
	if command.Pause(ctx, p.in.StartDelay) != nil {
		return
	}
	process := p.launch(launch)
	if process == nil {
		return
	}
	<-process.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := process.Err(); err != nil {
		p.err = fmt.Errorf("%w; it printed:\n%s", err, process.LogTail(errLines))
	}
}

// launch starts the process unless the replica was stopped.
func (p *Process) launch(launch func() (*proc.Process, error)) *proc.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	p.process, p.err = launch()
	return p.process
}

// halt prevents a start and returns the process, nil if it will never start.
func (p *Process) halt() *proc.Process {
	p.cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	return p.process
}

// Stop sends SIGTERM, and SIGKILL after 10 s or when ctx is done.
func (p *Process) Stop(ctx context.Context) error {
	process := p.halt()
	if process != nil {
		release := context.AfterFunc(ctx, process.Kill)
		defer release()
		if err := process.Stop(stopGrace); err != nil && !errors.Is(err, proc.ErrKilled) {
			return err
		}
	}
	<-p.done
	return nil
}

// Kill sends SIGKILL.
func (p *Process) Kill() error {
	if process := p.halt(); process != nil {
		process.Kill()
	}
	<-p.done
	return nil
}

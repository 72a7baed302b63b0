// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	// stopGrace is the grace period: an instance closes its consumer and ends within 1 s.
	stopGrace = 10 * time.Second
	errLines  = 30
)

// Process is a replica of Java, Python or Stream.
type Process struct {
	*proc.Process

	in        Instance
	completed func(Completion)
	url       string
	ready     chan struct{}
	once      sync.Once // closes ready
}

var _ Replica = (*Process)(nil)

// Ready is closed when the function is initialized, after it has subscribed.
func (p *Process) Ready() <-chan struct{} { return p.ready }

// MetricsURL is served once the replica is Ready.
func (p *Process) MetricsURL() string { return p.url }

// Err is why the process ended by itself, with the end of its log; nil otherwise.
func (p *Process) Err() error {
	if err := p.Process.Err(); err != nil {
		return fmt.Errorf("%w; it printed:\n%s", err, p.LogTail(errLines))
	}
	return nil
}

// connected is called by the collector when the function is initialized.
func (p *Process) connected() (report func(Completion)) {
	p.once.Do(func() { close(p.ready) })
	return func(done Completion) {
		done.Instance = p.in.ID
		p.completed(done)
	}
}

// Stop sends SIGTERM, and SIGKILL after 10 s or when ctx is done.
func (p *Process) Stop(ctx context.Context) error {
	release := context.AfterFunc(ctx, p.Process.Kill)
	defer release()
	if err := p.Process.Stop(stopGrace); !errors.Is(err, proc.ErrKilled) {
		return err
	}
	return nil
}

// Kill sends SIGKILL. The error is always nil.
func (p *Process) Kill() error {
	p.Process.Kill()
	return nil
}

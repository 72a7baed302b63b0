// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"sync"
	"time"
)

// stopGrace is how long a program may take to stop.
const stopGrace = 15 * time.Second

// Program is a process that a test may end and launch again. Its methods may be called from any goroutine; but for
// Kill they need a launch before.
type Program struct {
	config Config
	// lifetime is longer than that of the test that launches it again.
	lifetime context.Context //nolint:containedctx // see above

	mu      sync.Mutex // guards process
	process *Process
}

// NewProgram returns a program that lives at most as long as the context.
func NewProgram(lifetime context.Context, config Config) *Program {
	return &Program{config: config, lifetime: lifetime}
}

// Launch starts the process, also after its end.
func (p *Program) Launch() error {
	process, err := Start(p.lifetime, p.config)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process = process
	return nil
}

// Process is that of the last launch, which may have ended; nil before the first.
func (p *Program) Process() *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// Name is Config.Name.
func (p *Program) Name() string { return p.config.Name }

// Kill kills the process, as a crash does.
func (p *Program) Kill() {
	if process := p.Process(); process != nil {
		process.Kill()
	}
}

// Stop ends the process by SIGTERM, as a rollout does. The error wraps ErrKilled if it had to be killed after 15 s.
func (p *Program) Stop() error { return p.Process().Stop(stopGrace) }

// Pause stops the process by SIGSTOP, as a frozen machine does: its sockets stay open and it does not respond.
func (p *Program) Pause() error { return p.Process().Pause() }

// Resume continues a paused process.
func (p *Program) Resume() error { return p.Process().Resume() }

// Done is closed when the process has ended.
func (p *Program) Done() <-chan struct{} { return p.Process().Done() }

// Ended is an error with the reason if the process has ended.
func (p *Program) Ended() error {
	process := p.Process()
	select {
	case <-process.Done():
		return errors.Join(errors.New("the process has ended"), process.Err())
	default:
		return nil
	}
}

// LogTail returns the last n lines of this run of the process.
func (p *Program) LogTail(n int) string { return p.Process().LogTail(n) }

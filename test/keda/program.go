// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// Program is one of KEDA's processes. Its methods may be called from any goroutine.
type Program struct {
	config proc.Config
	ready  func(ctx context.Context) (bool, string, error)
	// lifetime is that of KEDA: a restarted process must outlive the test.
	lifetime context.Context //nolint:containedctx // see above
	// MetricsURL serves its metrics in Prometheus' format.
	MetricsURL string

	// mu guards process.
	mu      sync.Mutex
	process *proc.Process
}

func (p *Program) launch() error {
	process, err := proc.Start(p.lifetime, p.config)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process = process
	return nil
}

// Wait returns when the program works.
func (p *Program) Wait(ctx context.Context) error {
	process := p.current()
	err := cluster.WaitFor(ctx, p.config.Name+" to work", pollEvery, func(ctx context.Context) (bool, string, error) {
		select {
		case <-process.Done():
			return false, "", errors.Join(errors.New("the process has ended"), process.Err())
		default:
			return p.ready(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("%w; its last lines:\n%s", err, process.LogTail(logLines))
	}
	return nil
}

// Restart restarts the process, also a running one, and returns when it works.
func (p *Program) Restart(ctx context.Context) error {
	p.Kill()
	if err := p.launch(); err != nil {
		return err
	}
	return p.Wait(ctx)
}

func (p *Program) current() *proc.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// Kill kills the process, as a crash does.
func (p *Program) Kill() {
	if process := p.current(); process != nil {
		process.Kill()
	}
}

// Stop ends the process by SIGTERM, as a rollout does; it fails if the process had to be killed after 15 s.
func (p *Program) Stop() error {
	const grace = 15 * time.Second
	return p.current().Stop(grace)
}

// Pause stops the process by SIGSTOP: its sockets stay open and it does not respond.
func (p *Program) Pause() error { return p.current().Pause() }

// Resume continues a paused process.
func (p *Program) Resume() error { return p.current().Resume() }

// LogTail returns the last n lines of this run of the process.
func (p *Program) LogTail(n int) string { return p.current().LogTail(n) }

// operatorReady checks the operator's readiness, and that it listens for the metrics server.
func operatorReady(port ports) func(ctx context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+local(port.health)+"/readyz", http.NoBody)
		if err != nil {
			return false, "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error(), nil
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			return false, "/readyz: " + response.Status, nil
		}
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", local(port.service))
		if err != nil {
			return false, err.Error(), nil
		}
		return true, "", connection.Close()
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// process is a Container that runs from its start.
type process struct {
	*proc.Process

	ready chan struct{}
	url   string
}

// Process returns a process as the Container, with the URL of its metrics; empty for none.
func Process(p *proc.Process, metricsURL string) Container {
	ready := make(chan struct{})
	close(ready)
	return process{Process: p, ready: ready, url: metricsURL}
}

// Ready implements Container.
func (p process) Ready() <-chan struct{} { return p.ready }

// MetricsURL implements Container.
func (p process) MetricsURL() string { return p.url }

// Stop implements Container.
func (p process) Stop(ctx context.Context) error {
	deadline, _ := ctx.Deadline() // without one it is killed
	if err := p.Process.Stop(time.Until(deadline)); !errors.Is(err, proc.ErrKilled) {
		return err
	}
	return nil // as by a kubelet
}

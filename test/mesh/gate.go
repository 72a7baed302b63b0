// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"sync"
)

// gate blocks reconciles while it is shut. It is safe for concurrent use.
type gate struct {
	// mu guards shut.
	mu sync.Mutex
	// shut is closed when the gate opens; nil while it is open.
	shut chan struct{}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// pass waits until the gate is open, or returns the error of ctx.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut == nil {
		return nil
	}
	select {
	case <-shut:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting until the operator resumes: %w", ctx.Err())
	}
}

// Pause stops Function Mesh's controllers, as if its operator were stopped: changes of its objects have no effect. A
// reconcile in progress ends. The controllers of pods run on: they stand for kube-controller-manager and a kubelet.
func (o *Operator) Pause() { o.gate.close() }

// Resume starts Function Mesh's controllers again, which handle missed changes.
func (o *Operator) Resume() { o.gate.open() }

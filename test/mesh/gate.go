// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"sync"
)

// gate holds reconciles back while it is shut. It is safe for concurrent use.
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

// pass waits until the gate is open, or fails with ctx.
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

// Pause stops Function Mesh's part as if its operator were stopped: nothing follows a change of its objects. A
// reconcile that is under way ends. The pods' part runs on: it is kube-controller-manager's and a kubelet's.
func (o *Operator) Pause() { o.gate.close() }

// Resume lets Function Mesh's part act on what changed meanwhile.
func (o *Operator) Resume() { o.gate.open() }

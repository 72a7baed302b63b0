// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// Open opens the stage. The end of ctx interrupts opening; afterwards only closeStage ends it, so that an interrupted
// benchmark ends its parts in order.
func Open(ctx context.Context, config stage.Config) (_ *stage.Stage, closeStage func(), err error) {
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	s, err := stage.Open(lifetime, config)
	release()
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("setting the stage: %w", err)
	}
	return s, func() { s.Close(); cancel() }, nil
}

// Crashed returns which server of a stage ended by itself, with the end of its log.
func Crashed(s *stage.Stage) error {
	type server interface {
		Done() <-chan struct{}
		LogTail(lines int) string
	}
	servers := map[string]server{"the broker": s.Broker}
	for _, name := range []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager} {
		servers[name] = s.Cluster.Component(name)
	}
	const lines = 30
	for name, one := range servers {
		select {
		case <-one.Done():
			return fmt.Errorf("%s has ended by itself; it printed:\n%s", name, one.LogTail(lines))
		default:
		}
	}
	return nil
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// watch shows a sample a second until enough returns true, a server crashes or ctx ends.
func (d *demo) watch(ctx context.Context, scene *stage.Stage, f *stage.Function, begun time.Time,
	enough func(sample) bool,
) error {
	timer := time.NewTimer(lookEvery) // not a ticker, which ticks twice after a stall of the machine
	defer timer.Stop()
	last := sample{Sample: run.Sample{Published: f.Published()}}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if err := crashed(scene); err != nil {
			return err
		}
		last = observe(ctx, scene, f, begun).follows(last)
		timer.Reset(lookEvery)
		d.screen.show(last)
		if enough(last) {
			return nil
		}
	}
}

// crashed returns which server of a stage ended by itself, with the end of its log.
func crashed(s *stage.Stage) error {
	servers := map[string]*proc.Process{"the broker": s.Broker.Process()}
	for _, one := range []cluster.Program{s.Cluster.Etcd, s.Cluster.APIServer, s.Cluster.ControllerManager} {
		servers[one.Name()] = one.Process()
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

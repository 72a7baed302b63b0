// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// watch shows a sample a second until enough returns true, a server crashes or ctx ends.
func (d *demo) watch(ctx context.Context, scene *stage.Stage, f *stage.Function, begun time.Time,
	enough func(sample) bool,
) error {
	timer := time.NewTimer(lookEvery) // not a ticker, which ticks twice after a stall of the machine
	defer timer.Stop()
	done, _ := f.Score.Totals()
	last := sample{published: f.Published(), done: int64(done)}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if err := testbed.Crashed(scene); err != nil {
			return err
		}
		last = next(last, observe(ctx, scene, f, begun))
		timer.Reset(lookEvery)
		d.screen.show(last)
		if enough(last) {
			return nil
		}
	}
}

// observe takes one sample.
func observe(ctx context.Context, scene *stage.Stage, f *stage.Function, begun time.Time) observation {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	o := observation{running: scene.Mesh.Running(stage.Namespace, f.Name)}
	o.policy, o.policyErr = f.Policy(ctx)
	o.replicas, o.replicasErr = f.Replicas(ctx)
	o.wait, _, o.anyDone = f.Score.Recent()
	done, _ := f.Score.Totals()
	o.published, o.done, o.at = f.Published(), int64(done), time.Since(begun)
	return o
}

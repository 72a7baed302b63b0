// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
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
		if err := testbed.Crashed(scene); err != nil {
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

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// filmed is worked with samples: one replica of 50/s, and then five, under the load.
func filmed(t *testing.T) outcome {
	t.Helper()
	o := worked()
	load, err := o.scenario.load().Schedule(nil)
	require.NoError(t, err)
	var done float64
	for at := time.Second; at <= 160*time.Second; at += time.Second {
		published, capacity := load.Messages(at), 50.0
		if at > 35*time.Second {
			capacity = 250
		}
		done = min(done+capacity, published)
		o.samples = append(o.samples, sample{
			at: at, published: int64(published), done: int64(done), current: known(1),
			wait: at / 8, waitKnown: at > 2*time.Second,
		})
	}
	return o
}

func TestRatesAreMeansOverAWindow(t *testing.T) {
	o := filmed(t)
	rate := summarize(o).rate("published", func(one point) int64 { return one.Published })
	require.Len(t, rate.Seconds, len(o.samples))
	const near = 2 // seconds
	up, down := o.scenario.calm.Seconds(), o.scenario.fall().Seconds()
	for i, at := range rate.Seconds {
		switch got := *rate.Values[i]; {
		case at < up-near || at > down+near:
			require.InDelta(t, o.scenario.low, got, 0.01, "at %v s", at)
		case at > up+near && at < down-near:
			require.InDelta(t, o.scenario.high, got, 0.01, "at %v s", at)
		default:
			require.GreaterOrEqual(t, got, o.scenario.low)
			require.LessOrEqual(t, got, o.scenario.high)
		}
	}
}

func TestReplicasAreSteps(t *testing.T) {
	o := filmed(t)
	require.Equal(t, page.Series{
		Name: "desired", Step: true, Seconds: []float64{0, 25.25, 26, 35, 120, 140, 160},
		Values: page.Known(1, 5, 5, 5, 2, 1, 1),
	}, summarize(o).steps("desired", func(one step) int { return one.Desired }))
}

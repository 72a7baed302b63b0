// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image/png"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/figure"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// filmed is worked with samples: one replica of 50/s, and then five, under the load.
func filmed() outcome {
	o := worked()
	var done float64
	for at := time.Second; at <= 160*time.Second; at += time.Second {
		published, capacity := o.scenario.published(at), 50.0
		if at > 35*time.Second {
			capacity = 250
		}
		done = min(done+capacity, published)
		o.samples = append(o.samples, sample{at: at, published: int64(published), done: int64(done), current: known(1)})
	}
	return o
}

func TestTheImageIsAPNGOfTheSizeThatItSays(t *testing.T) {
	for name, o := range map[string]outcome{
		"a whole demo":         filmed(),
		"one without a sample": worked(),
		"one without anything": {scenario: full()},
	} {
		t.Run(name, func(t *testing.T) {
			image, err := newPicture(o, summarize(o)).image()
			require.NoError(t, err)
			decoded, err := png.Decode(bytes.NewReader(image))
			require.NoError(t, err)
			require.Equal(t, figure.Width, decoded.Bounds().Dx())
			require.Equal(t, figure.Height, decoded.Bounds().Dy())
			require.Less(t, len(image), 200<<10)
			colours := map[[3]uint32]bool{}
			for x := range decoded.Bounds().Dx() {
				for y := range decoded.Bounds().Dy() {
					r, g, b, _ := decoded.At(x, y).RGBA()
					colours[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
				}
			}
			require.Greater(t, len(colours), 10, "something is drawn")
		})
	}
}

func TestRatesAreMeansOverAWindow(t *testing.T) {
	o := filmed()
	p := newPicture(o, summary{})
	points := p.rate(func(one sample) int64 { return one.published })
	require.Len(t, points, len(o.samples))
	const near = 2 // seconds
	up, down := o.scenario.calm.Seconds(), o.scenario.fall().Seconds()
	for _, point := range points {
		switch {
		case point.X < up-near || point.X > down+near:
			require.InDelta(t, o.scenario.low, point.Y, 0.01, "at %v s", point.X)
		case point.X > up+near && point.X < down-near:
			require.InDelta(t, o.scenario.high, point.Y, 0.01, "at %v s", point.X)
		default:
			require.GreaterOrEqual(t, point.Y, o.scenario.low)
			require.LessOrEqual(t, point.Y, o.scenario.high)
		}
	}
}

func TestReplicasAreSteps(t *testing.T) {
	o := filmed()
	points := newPicture(o, summary{}).steps(func(one mesh.Sample) int { return one.Desired })
	require.Equal(t, plotter.XYs{
		{X: 0, Y: 1},
		{X: 25.25, Y: 1},
		{X: 25.25, Y: 5},
		{X: 26, Y: 5},
		{X: 26, Y: 5},
		{X: 35, Y: 5},
		{X: 35, Y: 5},
		{X: 120, Y: 5},
		{X: 120, Y: 2},
		{X: 140, Y: 2},
		{X: 140, Y: 1},
		{X: 160, Y: 1},
	}, points)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// step is a round distance between ticks, for three to six of them.
func step(highest float64) float64 {
	for scale := 1.0; ; scale *= 10 {
		for _, round := range []float64{1, 2, 5} {
			if highest < round*scale*5 {
				return round * scale
			}
		}
	}
}

// ticks are at this distance, each with its number.
func ticks(every float64) plot.Ticker {
	return plot.TickerFunc(func(low, high float64) []plot.Tick {
		var marks []plot.Tick
		for value := math.Ceil(low/every) * every; value <= high; value += every {
			marks = append(marks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', -1, 64)})
		}
		return marks
	})
}

// alignLabels pads the numbers of all Y axes to equal width, so that the labels are aligned. Two spaces of this font
// are as wide as a digit.
func alignLabels(panels [][]*plot.Plot) {
	widest := 0
	for _, row := range panels {
		for _, tick := range row[0].Y.Tick.Marker.Ticks(row[0].Y.Min, row[0].Y.Max) {
			widest = max(widest, len(tick.Label))
		}
	}
	for _, row := range panels {
		marks := row[0].Y.Tick.Marker.Ticks(row[0].Y.Min, row[0].Y.Max)
		for i, tick := range marks {
			marks[i].Label = strings.Repeat("  ", widest-len(tick.Label)) + tick.Label
		}
		row[0].Y.Tick.Marker = plot.ConstantTicks(marks)
	}
}

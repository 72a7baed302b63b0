// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"
)

func drawn(t *testing.T, f Figure) image.Image {
	t.Helper()
	encoded, err := f.PNG()
	require.NoError(t, err)
	decoded, err := png.Decode(bytes.NewReader(encoded))
	require.NoError(t, err)
	require.Equal(t, image.Pt(Width, Height), decoded.Bounds().Size())
	return decoded
}

// pixels of exactly one colour.
func pixels(of image.Image, c color.Color) int {
	r, g, b, _ := c.RGBA()
	count := 0
	for x := range of.Bounds().Dx() {
		for y := range of.Bounds().Dy() {
			if r1, g1, b1, _ := of.At(x, y).RGBA(); r1 == r && g1 == g && b1 == b {
				count++
			}
		}
	}
	return count
}

func TestEveryCurveIsDrawnInItsColour(t *testing.T) {
	curve := func(c color.Color) Curve {
		return Curve{Name: "a curve", Color: c, Points: plotter.XYs{{X: 0, Y: 1}, {X: 10, Y: 1}}}
	}
	f := Figure{Title: "title", XLabel: "time (s)", XMax: 10, XTick: 1, Panels: []Panel{
		{YLabel: "one", Curves: []Curve{curve(Blue())}}, {YLabel: "two", Curves: []Curve{curve(Green())}},
	}}
	whole := drawn(t, f)
	require.Greater(t, pixels(whole, Blue()), 1000)
	require.Greater(t, pixels(whole, Green()), 1000)
	require.Less(t, pixels(whole, Orange()), 10)
	f.Panels[0].Curves[0].Dashes = []float64{4, 4}
	require.Less(t, pixels(drawn(t, f), Blue()), pixels(whole, Blue())*2/3)
}

func TestMarksGoThroughAllPanels(t *testing.T) {
	f := Figure{XMax: 10, XTick: 5, Panels: []Panel{{}, {}}}
	without := drawn(t, f)
	f.Marks = []float64{2.5}
	with := drawn(t, f)
	rows := map[bool]int{}
	for y := range Height {
		for x := range Width {
			if with.At(x, y) != without.At(x, y) {
				rows[y < Height/2]++
				break
			}
		}
	}
	require.Greater(t, rows[true], 50)
	require.Greater(t, rows[false], 50)
}

func TestNaNIsAnErrorThatNamesTheCurve(t *testing.T) {
	_, err := Figure{
		XMax: 1, XTick: 1,
		Panels: []Panel{{Curves: []Curve{{Name: "nothing", Points: plotter.XYs{{Y: math.NaN()}}}}}},
	}.PNG()
	require.ErrorContains(t, err, "nothing")
}

func TestTicksAreRoundAndFew(t *testing.T) {
	require.InDelta(t, 1, step(0), 0, "an empty panel has an axis too")
	for highest := 0.5; highest < 1e6; highest *= 1.3 {
		every := step(highest)
		require.Contains(t, []float64{1, 2, 5}, math.Round(every/math.Pow(10, math.Floor(math.Log10(every)))))
		require.Less(t, highest/every, 5.0)
	}
}

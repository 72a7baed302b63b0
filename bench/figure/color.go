// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import "image/color"

// Blue is the first of the colours for curves. They are those of Okabe and Ito, which colour-blind people can
// distinguish.
func Blue() color.Color { return color.NRGBA{R: 0, G: 114, B: 178, A: 255} }

// Green is the second of them.
func Green() color.Color { return color.NRGBA{R: 0, G: 158, B: 115, A: 255} }

// Orange is the third.
func Orange() color.Color { return color.NRGBA{R: 213, G: 94, B: 0, A: 255} }

// Purple is the fourth.
func Purple() color.Color { return color.NRGBA{R: 204, G: 121, B: 167, A: 255} }

// Ink is for text and for further curves.
func Ink() color.Color { return color.NRGBA{R: 40, G: 44, B: 52, A: 255} }

// Slate is for minor text.
func Slate() color.Color { return color.NRGBA{R: 90, G: 96, B: 105, A: 255} }

// Gray is for axes and for curves to compare with.
func Gray() color.Color { return color.NRGBA{R: 130, G: 136, B: 145, A: 255} }

// Faint is for the grid.
func Faint() color.Color { return color.NRGBA{R: 228, G: 231, B: 235, A: 255} }

// Pale is a translucent colour.
func Pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 50} //nolint:gosec // 16 bits made 8
}

// Sky is the fifth.
func Sky() color.Color { return color.NRGBA{R: 86, G: 180, B: 233, A: 255} }

// Yellow is the sixth: Okabe and Ito's orange; Orange is their vermilion.
func Yellow() color.Color { return color.NRGBA{R: 230, G: 159, B: 0, A: 255} }

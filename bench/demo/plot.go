// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// The image, in pixels; at 96 of them per inch a font of 12 points is 16 pixels high.
const (
	imageWidth, imageHeight = 1200, 900
	pixelsPerInch           = 96
)

// rateWindow is long enough for the jitter of a busy machine to even out.
const rateWindow = 3 * time.Second

// The colours are those of Okabe and Ito, which people who are colour blind can tell apart.
func blue() color.Color   { return color.NRGBA{R: 0, G: 114, B: 178, A: 255} }
func green() color.Color  { return color.NRGBA{R: 0, G: 158, B: 115, A: 255} }
func orange() color.Color { return color.NRGBA{R: 213, G: 94, B: 0, A: 255} }
func ink() color.Color    { return color.NRGBA{R: 40, G: 44, B: 52, A: 255} }
func gray() color.Color   { return color.NRGBA{R: 130, G: 136, B: 145, A: 255} }
func slate() color.Color  { return color.NRGBA{R: 90, G: 96, B: 105, A: 255} }
func faint() color.Color  { return color.NRGBA{R: 228, G: 231, B: 235, A: 255} }

func pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 50} //nolint:gosec // 16 bits made 8
}

// picture is what the plot shows.
type picture struct {
	title, subtitle string
	scenario        scenario
	samples         []sample
	// begun is when the load began, for the timeline.
	begun    time.Time
	timeline []mesh.Sample
}

func newPicture(o outcome, s summary) picture {
	return picture{
		title: fmt.Sprintf("Replicas of a Pulsar Function follow a load of %.0f, %.0f and %.0f messages/s",
			o.scenario.low, o.scenario.high, o.scenario.low),
		subtitle: fmt.Sprintf("More replicas %s after the step up. %d of %d messages took longer than the objective of %.0f s. "+
			"Pulsar %s, Kubernetes %s.",
			seconds(s.ReactionSeconds), s.MessagesLate, s.MessagesDone, s.ObjectiveSeconds, s.PulsarVersion, s.KubernetesVersion),
		scenario: o.scenario, samples: o.samples, begun: o.begun, timeline: o.timeline,
	}
}

// image draws three panels that share the time axis, and returns a PNG.
func (p picture) image() ([]byte, error) {
	panels := make([][]*plot.Plot, 0, 3)
	for _, draw := range []func() (*plot.Plot, error){p.rates, p.backlog, p.replicas} {
		panel, err := draw()
		if err != nil {
			return nil, fmt.Errorf("drawing the plot: %w", err)
		}
		panels = append(panels, []*plot.Plot{panel})
	}
	alignLabels(panels)
	panels[len(panels)-1][0].X.Label.Text = "time since the load began (s)"

	inch := func(pixels float64) vg.Length { return vg.Length(pixels/pixelsPerInch) * vg.Inch }
	canvas := vgimg.NewWith(vgimg.UseWH(inch(imageWidth), inch(imageHeight)), vgimg.UseDPI(pixelsPerInch))
	tiles := draw.Tiles{
		Rows: len(panels), Cols: 1, PadY: inch(26),
		PadTop: inch(84), PadBottom: inch(14), PadLeft: inch(18), PadRight: inch(34),
	}
	whole := draw.New(canvas)
	for i, row := range plot.Align(panels, tiles, whole) {
		panels[i][0].Draw(row[0])
	}
	whole.FillText(style(15, ink()), vg.Point{X: inch(24), Y: inch(imageHeight - 38)}, p.title)
	whole.FillText(style(11, slate()), vg.Point{X: inch(24), Y: inch(imageHeight - 62)}, p.subtitle)
	var out bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&out); err != nil {
		return nil, fmt.Errorf("encoding the plot: %w", err)
	}
	return out.Bytes(), nil
}

func (p picture) rates() (*plot.Plot, error) {
	panel := p.panel("messages per second")
	return panel, p.add(panel,
		curve{name: "published", points: p.rate(func(one sample) int64 { return one.published }), color: gray(), fill: pale(gray())},
		curve{name: "done", points: p.rate(func(one sample) int64 { return one.done }), color: green()},
	)
}

// rate is the mean over rateWindow of how fast a count grows, at the middle of that window.
func (p picture) rate(pick func(sample) int64) plotter.XYs {
	samples := append([]sample{{}}, p.samples...) // both counts begin at 0
	var points plotter.XYs
	first := 0
	for i, one := range samples {
		for first < i && one.at-samples[first+1].at >= rateWindow {
			first++
		}
		if elapsed := (one.at - samples[first].at).Seconds(); elapsed > 0 {
			points = append(points, plotter.XY{
				X: (one.at + samples[first].at).Seconds() / 2,
				Y: float64(pick(one)-pick(samples[first])) / elapsed,
			})
		}
	}
	return points
}

func (p picture) backlog() (*plot.Plot, error) {
	panel := p.panel("backlog (messages)")
	points := make(plotter.XYs, len(p.samples))
	for i, one := range p.samples {
		points[i] = plotter.XY{X: one.at.Seconds(), Y: float64(one.backlog())}
	}
	return panel, p.add(panel, curve{name: "published and not done", points: points, color: orange(), fill: pale(orange())})
}

func (p picture) replicas() (*plot.Plot, error) {
	panel := p.panel("replicas")
	desired := p.steps(func(one mesh.Sample) int { return one.Desired })
	running := p.steps(func(one mesh.Sample) int { return one.Ready })
	err := p.add(panel,
		curve{name: "running", points: running, color: blue(), fill: pale(blue())},
		curve{name: "desired (spec.replicas)", points: desired, color: ink(), dashed: true},
	)
	return panel, err
}

// steps has two points per change, so that the line goes straight up and down.
func (p picture) steps(pick func(mesh.Sample) int) plotter.XYs {
	end := p.begun.Add(p.length())
	var points plotter.XYs
	for _, one := range during(p.timeline, p.begun, end) {
		x, y := one.Time.Sub(p.begun).Seconds(), float64(pick(one))
		if n := len(points); n > 0 {
			points = append(points, plotter.XY{X: x, Y: points[n-1].Y})
		}
		points = append(points, plotter.XY{X: x, Y: y})
	}
	return append(points, plotter.XY{X: p.length().Seconds(), Y: points[len(points)-1].Y})
}

// length of the time axis.
func (p picture) length() time.Duration {
	if len(p.samples) == 0 {
		return p.scenario.fall()
	}
	return p.samples[len(p.samples)-1].at
}

func sans(points float64) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(points))
}

func style(points float64, c color.Color) text.Style {
	return text.Style{Font: sans(points), Color: c, Handler: plot.DefaultTextHandler}
}

// panel is an empty plot with our fonts, a grid and marks where the load steps.
func (p picture) panel(label string) *plot.Plot {
	panel := plot.New()
	for ours, size := range map[*text.Style]float64{
		&panel.Legend.TextStyle: 12, &panel.X.Label.TextStyle: 12, &panel.X.Tick.Label: 11,
		&panel.Y.Label.TextStyle: 12, &panel.Y.Tick.Label: 11,
	} {
		ours.Font, ours.Color = sans(size), ink()
	}
	panel.Legend.Top = true
	panel.Legend.Padding, panel.Legend.YOffs = vg.Points(3), -vg.Points(2)
	panel.Legend.ThumbnailWidth = vg.Points(22)
	panel.Y.Label.Text = label
	panel.Y.Label.Padding, panel.X.Label.Padding = vg.Points(6), vg.Points(4)
	panel.X.Padding, panel.Y.Padding = 0, 0
	for _, axis := range []*plot.Axis{&panel.X, &panel.Y} {
		axis.Color, axis.Tick.Color = gray(), gray()
	}
	panel.X.Tick.Marker = ticks(20)
	panel.X.Min, panel.X.Max = 0, p.length().Seconds()
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint(), faint()
	panel.Add(grid)
	return panel
}

// curve is one line of a panel.
type curve struct {
	name   string
	points plotter.XYs
	color  color.Color
	fill   color.Color
	dashed bool
}

// add draws the curves over marks where the load steps, and leaves room above them for the legend.
func (p picture) add(panel *plot.Plot, curves ...curve) error {
	highest := 0.0
	for _, c := range curves {
		for _, point := range c.points {
			highest = max(highest, point.Y)
		}
	}
	every := step(highest)
	panel.Y.Min, panel.Y.Max = 0, every*(math.Floor(highest/every)+1)
	panel.Y.Tick.Marker = ticks(every)
	for _, at := range []time.Duration{p.scenario.calm, p.scenario.fall()} {
		x := min(at, p.length()).Seconds()
		mark, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: panel.Y.Max}})
		if err != nil {
			return fmt.Errorf("marking the steps of the load: %w", err)
		}
		mark.Color, mark.Width, mark.Dashes = gray(), vg.Points(0.8), []vg.Length{vg.Points(2), vg.Points(3)}
		panel.Add(mark)
	}
	for _, c := range curves {
		line, err := plotter.NewLine(c.points)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", c.name, err)
		}
		line.Color, line.Width, line.FillColor = c.color, vg.Points(1.8), c.fill
		if c.dashed {
			line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		panel.Add(line)
		panel.Legend.Add(c.name, line)
	}
	return nil
}

// step is a round distance of ticks that makes three to six of them.
func step(highest float64) float64 {
	for scale := 1.0; ; scale *= 10 {
		for _, round := range []float64{1, 2, 5} {
			if highest < round*scale*5 {
				return round * scale
			}
		}
	}
}

// ticks are so far apart, each with its number.
func ticks(every float64) plot.Ticker {
	return plot.TickerFunc(func(low, high float64) []plot.Tick {
		var marks []plot.Tick
		for value := math.Ceil(low/every) * every; value <= high; value += every {
			marks = append(marks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', -1, 64)})
		}
		return marks
	})
}

// alignLabels makes the numbers of all Y axes equally wide, so that the labels beside them stand in one line. Two spaces
// of this font are as wide as a digit.
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

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

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The image, in pixels; at 96 of them per inch a font of 12 points is 16 pixels high.
const (
	imageWidth, imageHeight = 1200, 900
	pixelsPerInch           = 96
)

// The colours are those of Okabe and Ito, which people who are colour blind can tell apart.
func blue() color.Color   { return color.NRGBA{R: 0, G: 114, B: 178, A: 255} }
func orange() color.Color { return color.NRGBA{R: 213, G: 94, B: 0, A: 255} }
func ink() color.Color    { return color.NRGBA{R: 40, G: 44, B: 52, A: 255} }
func gray() color.Color   { return color.NRGBA{R: 130, G: 136, B: 145, A: 255} }
func faint() color.Color  { return color.NRGBA{R: 228, G: 231, B: 235, A: 255} }

func pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 50} //nolint:gosec // 16 bits made 8
}

func inch(pixels float64) vg.Length { return vg.Length(pixels/pixelsPerInch) * vg.Inch }

// render draws a result: three panels that share the time axis. It returns a PNG.
func render(r result) ([]byte, error) {
	panels := make([][]*plot.Plot, 0, 3)
	for _, fill := range []func(result) (*plot.Plot, error){loadPanel, backlogPanel, replicasPanel} {
		panel, err := fill(r)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", r.Name, err)
		}
		panels = append(panels, []*plot.Plot{panel})
	}
	alignLabels(panels)
	panels[len(panels)-1][0].X.Label.Text = "time since the load began (s)"

	canvas := vgimg.NewWith(vgimg.UseWH(inch(imageWidth), inch(imageHeight)), vgimg.UseDPI(pixelsPerInch))
	tiles := draw.Tiles{
		Rows: len(panels), Cols: 1, PadY: inch(26),
		PadTop: inch(84), PadBottom: inch(14), PadLeft: inch(18), PadRight: inch(34),
	}
	whole := draw.New(canvas)
	for i, row := range plot.Align(panels, tiles, whole) {
		panels[i][0].Draw(row[0])
	}
	title := fmt.Sprintf("%s: real and simulated replicas of a Pulsar Function under the same load", r.Name)
	whole.FillText(style(15, ink()), vg.Point{X: inch(24), Y: inch(imageHeight - 38)}, title)
	whole.FillText(style(11, ink()), vg.Point{X: inch(24), Y: inch(imageHeight - 62)}, subtitle(r))
	var out bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&out); err != nil {
		return nil, fmt.Errorf("encoding the plot of %s: %w", r.Name, err)
	}
	return out.Bytes(), nil
}

func subtitle(r result) string {
	return fmt.Sprintf("Replica-hours: %s real, %s simulated. Late: %s %% real, %s %% simulated. Start %s s, %s messages/s per replica.",
		number(r.Real.ReplicaHours, 3), number(r.Sim.ReplicaHours, 3), number(r.Real.LatePct, 2), number(r.Sim.LatePct, 2),
		number(r.Measured.StartSeconds, 1), number(r.Measured.CapacityPerReplica, 1))
}

func loadPanel(r result) (*plot.Plot, error) {
	panel := newPanel(r, "messages per second")
	return panel, add(panel, curve{name: "load", points: points(r.Trace.Rate), color: gray(), fill: pale(gray())})
}

func backlogPanel(r result) (*plot.Plot, error) {
	panel := newPanel(r, "backlog (messages)")
	return panel, add(panel,
		curve{name: "real", points: points(r.Trace.RealBacklog), color: orange(), fill: pale(orange())},
		curve{name: "simulated, mean", points: points(r.Trace.SimBacklog), color: ink(), dashed: true},
	)
}

func replicasPanel(r result) (*plot.Plot, error) {
	panel := newPanel(r, "replicas")
	if band := between(r.Trace.SimLow, r.Trace.SimHigh); len(band) > 0 {
		area, err := plotter.NewPolygon(band)
		if err != nil {
			return nil, fmt.Errorf("drawing the extremes: %w", err)
		}
		area.Color, area.Width = faint(), 0
		panel.Add(area)
		panel.Legend.Add("simulated, all runs", area)
	}
	return panel, add(panel,
		curve{name: "real", points: points(r.Trace.Real), color: blue()},
		curve{name: "simulated, mean", points: points(r.Trace.Sim), color: ink(), dashed: true},
	)
}

// points of a value for each second.
func points(values []float64) plotter.XYs {
	all := make(plotter.XYs, len(values))
	for i, v := range values {
		all[i] = plotter.XY{X: float64(i), Y: v}
	}
	return all
}

// between is the outline of an area: along the one, and back along the other.
func between(low, high []float64) plotter.XYs {
	all := points(high)
	for i := len(low) - 1; i >= 0; i-- {
		all = append(all, plotter.XY{X: float64(i), Y: low[i]})
	}
	return all
}

func sans(points float64) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(points))
}

func style(points float64, c color.Color) text.Style {
	return text.Style{Font: sans(points), Color: c, Handler: plot.DefaultTextHandler}
}

// newPanel is an empty plot with our fonts and a grid.
func newPanel(r result, label string) *plot.Plot {
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
	panel.X.Tick.Marker = ticks(60 * tickStep(float64(r.Seconds)/60/2))
	panel.X.Min, panel.X.Max = 0, float64(max(1, r.Seconds-1))
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

// add draws the curves and leaves room above them for the legend.
func add(panel *plot.Plot, curves ...curve) error {
	highest := 0.0
	for _, c := range curves {
		for _, point := range c.points {
			highest = max(highest, point.Y)
		}
	}
	every := tickStep(highest)
	panel.Y.Min, panel.Y.Max = 0, every*(math.Floor(1.3*highest/every)+1)
	panel.Y.Tick.Marker = ticks(every)
	for _, c := range curves {
		if len(c.points) == 0 {
			continue
		}
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

// tickStep is a round distance of ticks that makes three to six of them.
func tickStep(highest float64) float64 {
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

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

const (
	// Width of the image, in pixels.
	Width = 1200
	// Height of the image, in pixels.
	Height = 900

	// pixelsPerInch makes a font of 12 points 16 pixels high.
	pixelsPerInch = 96
)

// Figure is panels that share their X axis.
type Figure struct {
	Title, Subtitle string
	// XLabel names the axis with its unit. The axis is from 0 to XMax, with a number at every XTick.
	XLabel      string
	XMax, XTick float64
	// Marks are dotted vertical lines through all panels.
	Marks  []float64
	Panels []Panel
}

// Panel is curves over one Y axis, which begins at 0.
type Panel struct {
	// YLabel names the axis with its unit.
	YLabel string
	Curves []Curve
}

// Curve is one line of a panel. The later ones lie over the earlier ones.
type Curve struct {
	Name   string
	Points plotter.XYs
	Color  color.Color
	// Fill of the area below the line; nil for none.
	Fill color.Color
	// Dashes are the lengths of strokes and gaps in points; none for a solid line.
	Dashes []float64
	// Width in points; 0 is 1.8.
	Width float64
}

// PNG draws the figure.
func (f Figure) PNG() ([]byte, error) {
	panels := make([][]*plot.Plot, 0, len(f.Panels))
	for _, p := range f.Panels {
		panel, err := f.panel(p)
		if err != nil {
			return nil, fmt.Errorf("drawing the plot: %w", err)
		}
		panels = append(panels, []*plot.Plot{panel})
	}
	alignLabels(panels)
	panels[len(panels)-1][0].X.Label.Text = f.XLabel

	inch := func(pixels float64) vg.Length { return vg.Length(pixels/pixelsPerInch) * vg.Inch }
	canvas := vgimg.NewWith(vgimg.UseWH(inch(Width), inch(Height)), vgimg.UseDPI(pixelsPerInch))
	tiles := draw.Tiles{
		Rows: len(panels), Cols: 1, PadY: inch(36),
		PadTop: inch(104), PadBottom: inch(14), PadLeft: inch(18), PadRight: inch(34),
	}
	whole := draw.New(canvas)
	for i, row := range plot.Align(panels, tiles, whole) {
		panels[i][0].Draw(row[0])
		legend(panels[i][0].DataCanvas(row[0]), f.Panels[i].Curves)
	}
	whole.FillText(style(15, Ink()), vg.Point{X: inch(24), Y: inch(Height - 38)}, f.Title)
	whole.FillText(style(11, Slate()), vg.Point{X: inch(24), Y: inch(Height - 62)}, f.Subtitle)
	var out bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&out); err != nil {
		return nil, fmt.Errorf("encoding the plot: %w", err)
	}
	return out.Bytes(), nil
}

func sans(points float64) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(points))
}

func style(points float64, c color.Color) text.Style {
	return text.Style{Font: sans(points), Color: c, Handler: plot.DefaultTextHandler}
}

// panel draws the curves over a grid and the marks.
func (f Figure) panel(p Panel) (*plot.Plot, error) {
	panel := f.empty(p.YLabel)
	highest := 0.0
	for _, c := range p.Curves {
		if _, err := plotter.CopyXYs(c.Points); err != nil && !errors.Is(err, plotter.ErrNoData) {
			return nil, fmt.Errorf("drawing %s: %w", c.Name, err) // NaN has no axis
		}
		for _, point := range c.Points {
			highest = max(highest, point.Y)
		}
	}
	every := step(highest)
	panel.Y.Min, panel.Y.Max = 0, every*(math.Floor(highest/every)+1)
	panel.Y.Tick.Marker = ticks(every)
	for _, x := range f.Marks {
		mark, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: panel.Y.Max}})
		if err != nil {
			return nil, fmt.Errorf("drawing a mark: %w", err)
		}
		mark.Color, mark.Width, mark.Dashes = Gray(), vg.Points(0.8), []vg.Length{vg.Points(2), vg.Points(3)}
		panel.Add(mark)
	}
	for _, c := range p.Curves {
		line, err := plotter.NewLine(c.Points)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", c.Name, err)
		}
		line.LineStyle, line.FillColor = c.style(), c.Fill
		panel.Add(line)
	}
	return panel, nil
}

func (c Curve) style() draw.LineStyle {
	line := draw.LineStyle{Color: c.Color, Width: vg.Points(1.8)}
	if c.Width > 0 {
		line.Width = vg.Points(c.Width)
	}
	for _, length := range c.Dashes {
		line.Dashes = append(line.Dashes, vg.Points(length))
	}
	return line
}

// legend names the curves in one line above a panel, where it covers none of them.
func legend(panel draw.Canvas, curves []Curve) {
	const thumbnail, gap, between = 22, 5, 18 // points
	words := style(12, Ink())
	x, y := panel.Min.X, panel.Max.Y+vg.Points(8)
	for _, c := range curves {
		end := x + vg.Points(thumbnail)
		if c.Fill != nil {
			panel.FillPolygon(c.Fill,
				[]vg.Point{{X: x, Y: y - vg.Points(5)}, {X: end, Y: y - vg.Points(5)}, {X: end, Y: y}, {X: x, Y: y}})
		}
		panel.StrokeLine2(c.style(), x, y, end, y)
		panel.FillText(words, vg.Point{X: end + vg.Points(gap), Y: y - vg.Points(4)}, c.Name)
		x = end + vg.Points(gap+between) + words.Width(c.Name)
	}
}

// empty is a plot with our fonts and a grid.
func (f Figure) empty(label string) *plot.Plot {
	panel := plot.New()
	for ours, size := range map[*text.Style]float64{
		&panel.X.Label.TextStyle: 12, &panel.X.Tick.Label: 11,
		&panel.Y.Label.TextStyle: 12, &panel.Y.Tick.Label: 11,
	} {
		ours.Font, ours.Color = sans(size), Ink()
	}
	panel.Y.Label.Text = label
	panel.Y.Label.Padding, panel.X.Label.Padding = vg.Points(6), vg.Points(4)
	panel.X.Padding, panel.Y.Padding = 0, 0
	for _, axis := range []*plot.Axis{&panel.X, &panel.Y} {
		axis.Color, axis.Tick.Color = Gray(), Gray()
	}
	panel.X.Tick.Marker = ticks(f.XTick)
	panel.X.Min, panel.X.Max = 0, f.XMax
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = Faint(), Faint()
	panel.Add(grid)
	return panel
}

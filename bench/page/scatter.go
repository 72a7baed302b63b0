// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"math"
	"slices"
)

// Scatter compares by two numbers of which less is better. The first point is in colour, the others are grey.
type Scatter struct {
	// Title is a heading, and X and Y name the numbers with their units.
	Title, X, Y string
	Points      []Point
	// Names is how many points, from the first on, have their names beside them; 0 for all.
	Names int
}

// Point is one of a Scatter. Values are not negative.
type Point struct {
	Name string
	X, Y float64
}

// Costs compares contenders by their replica-hours and late messages.
func Costs() *Scatter {
	return &Scatter{Title: "Cost and late messages", X: "replica-hours", Y: "late messages, %"}
}

// Add adds one of Costs, where late is the share of its messages.
func (s *Scatter) Add(name string, replicaHours, late float64) {
	s.Points = append(s.Points, Point{Name: name, X: replicaHours, Y: 100 * late})
}

// The area of the points: a share of the width in percent, and pixels from the top.
const (
	areaLeft, areaRight = 11.0, 94.0
	areaTop, areaBottom = 26.0, 224.0
	// lineHeight is that of a name, and nameWidth what one takes at most, in percent, on a telephone.
	lineHeight, nameWidth = 15.0, 40.0
	// mostLetters of a name fit in that; beside a point, in pixels.
	mostLetters = 24
	nameShift   = 10
)

// plot is a Scatter for page.html.
type plot struct {
	Scatter
	Left, Right, Top, Bottom float64
	XTicks, YTicks           []tick
	Dots                     []dot
}

type tick struct {
	At   float64
	Text string
}

// dot is a point with its name, which is left of it in the right half. Without a name it is small.
type dot struct {
	Name, Title, Anchor string
	X, Y, LabelY        float64
	Shift, Radius       int
	First, Leader       bool
}

func newPlot(s Scatter) *plot {
	p := &plot{Scatter: s, Left: areaLeft, Right: areaRight, Top: areaTop, Bottom: areaBottom}
	var mostX, mostY float64
	for _, point := range s.Points {
		mostX, mostY = max(mostX, point.X), max(mostY, point.Y)
	}
	stepX, endX := axis(mostX)
	stepY, endY := axis(mostY)
	atX := func(x float64) float64 { return placed(areaLeft + (areaRight-areaLeft)*x/endX) }
	atY := func(y float64) float64 { return placed(areaBottom - (areaBottom-areaTop)*y/endY) }
	for n := 0.0; n*stepX <= endX*(1+1e-9); n++ {
		p.XTicks = append(p.XTicks, tick{atX(n * stepX), number(n * stepX)})
	}
	for n := 0.0; n*stepY <= endY*(1+1e-9); n++ {
		p.YTicks = append(p.YTicks, tick{atY(n * stepY), number(n * stepY)})
	}
	for i, point := range s.Points {
		d := dot{
			Name:  shortened(point.Name),
			Title: point.Name + ": " + number(point.X) + " " + s.X + ", " + number(point.Y) + " " + s.Y, Anchor: "start",
			X: atX(point.X), Y: atY(point.Y), Shift: nameShift, Radius: 5, First: i == 0,
		}
		switch {
		case i == 0:
			d.Radius = 6
		case s.Names > 0 && i >= s.Names:
			d.Name, d.Radius = "", 3
		}
		if d.X > (areaLeft+areaRight)/2 {
			d.Anchor, d.Shift = "end", -nameShift
		}
		p.Dots = append(p.Dots, d)
	}
	p.label()
	slices.Reverse(p.Dots) // the first one is drawn last, above the others
	return p
}

// shortened keeps the end of a name, such as that of a policy after its namespace.
func shortened(name string) string {
	if letters := []rune(name); len(letters) > mostLetters {
		return "…" + string(letters[len(letters)-mostLetters+1:])
	}
	return name
}

// label moves names up until none is on another, or down where they would leave the picture.
func (p *plot) label() {
	var order []*dot
	for i := range p.Dots {
		if p.Dots[i].Name != "" {
			order = append(order, &p.Dots[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *dot) int { return cmp.Compare(b.Y, a.Y) })
	for i, d := range order {
		if d.LabelY = d.free(order[:i], -lineHeight); d.LabelY < lineHeight {
			d.LabelY = d.free(order[:i], lineHeight)
		}
		d.Leader = math.Abs(d.Y-d.LabelY) >= lineHeight
	}
}

// free is the height of a name that is on no other one, in steps from its point.
func (d dot) free(others []*dot, step float64) float64 {
	d.LabelY = d.Y
	for i := 0; i < len(others); i++ {
		if other := others[i]; d.isOn(*other) {
			d.LabelY, i = placed(other.LabelY+step), -1 // look at all again
		}
	}
	return d.LabelY
}

// isOn reports whether two names are on each other.
func (d dot) isOn(other dot) bool {
	const tenth = 0.1 // the precision of a place
	return math.Abs(other.LabelY-d.LabelY) < lineHeight-tenth && d.near(other)
}

// near reports whether two names at the same height may be on each other.
func (d dot) near(other dot) bool {
	left, right := d, other
	if left.X > right.X {
		left, right = right, left
	}
	apart := right.X - left.X
	if left.Anchor == "end" && right.Anchor == "start" {
		return false
	}
	if left.Anchor == "start" && right.Anchor == "end" {
		return apart < 2*nameWidth
	}
	return apart < nameWidth
}

// axis has ticks at each step, up to an end that is at least the largest value.
func axis(most float64) (step, end float64) {
	const ticks = 4
	if most <= 0 {
		return 1, 1
	}
	step = math.Pow(10, math.Floor(math.Log10(most/ticks)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor*ticks >= most*(1-1e-9) {
			step *= factor
			break
		}
	}
	return step, step * math.Ceil(most/step-1e-9)
}

// placed has tenths, which are enough on a screen.
func placed(at float64) float64 { return math.Round(10*at) / 10 }

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

//go:embed page.html page.css page.js uplot/LICENSE uplot/uPlot.iife.min.js uplot/uPlot.min.css
var assets embed.FS

// document is the data of page.html.
type document struct {
	Page
	Charts []figure
	Plot   *plot
	// Policy allows Library, Script and Style by their checksums.
	Library, Script template.JS
	Style           template.CSS
	Policy          string
	// Curves is the JSON that Script draws.
	Curves template.JS
}

// figure is a chart, the text of its band, and its values as a table.
type figure struct {
	Chart
	Band   string
	Values values
}

// Write writes the page as HTML, or nothing when the page is wrong.
func (p Page) Write(w io.Writer) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	d, err := newDocument(p)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	layout, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return fmt.Errorf("reading the layout of the page: %w", err)
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, d); err != nil {
		return fmt.Errorf("laying out the page: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func newDocument(p Page) (document, error) {
	texts := map[string]string{}
	for _, name := range []string{
		"uplot/LICENSE", "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "page.js", "page.css",
	} {
		text, err := assets.ReadFile(name)
		if err != nil {
			return document{}, fmt.Errorf("reading a part of the page: %w", err)
		}
		texts[name] = string(text)
	}
	curves, err := encode(p.Charts)
	if err != nil {
		return document{}, err
	}
	// The library's licence must be in each copy of it.
	library := "/*\n" + texts["uplot/LICENSE"] + "*/\n" + texts["uplot/uPlot.iife.min.js"]
	style := texts["uplot/uPlot.min.css"] + texts["page.css"]
	d := document{
		Page: p, Curves: template.JS(curves),
		Library: template.JS(library), Script: template.JS(texts["page.js"]), Style: template.CSS(style),
		Policy: fmt.Sprintf("default-src 'none'; base-uri 'none'; form-action 'none'; script-src %s %s; style-src %s",
			checksum(library), checksum(texts["page.js"]), checksum(style)),
	}
	for _, chart := range p.Charts {
		f := figure{Chart: chart, Values: newValues(chart)}
		if chart.Objective != nil {
			f.Band = "objective " + number(*chart.Objective) + " " + chart.Unit
		}
		d.Charts = append(d.Charts, f)
	}
	if p.Scatter != nil {
		d.Plot = newPlot(*p.Scatter)
	}
	return d, nil
}

// File writes the page into a file, or nothing when the page is wrong.
func (p Page) File(path string) error {
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return err
	}
	return output.File(path, text.Bytes())
}

// checksum is a source of a Content-Security-Policy.
func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// curves is a Chart for page.js. Start is in seconds of Unix time; null is a chart of the time since the start.
type curves struct {
	Chart

	Start *float64 `json:"start"`
}

// encode escapes <, > and &, so that no text ends the script element that holds the JSON.
func encode(charts []Chart) ([]byte, error) {
	all := make([]curves, 0, len(charts))
	for _, chart := range charts {
		one := curves{Chart: chart}
		one.Series = make([]Series, len(chart.Series))
		if !chart.Start.IsZero() {
			start := float64(chart.Start.UnixMilli()) / 1000
			one.Start = &start
		}
		for i, s := range chart.Series {
			s = s.thin()
			s.Seconds, s.Values = append([]float64{}, s.Seconds...), append([]*float64{}, s.Values...) // [], not null
			one.Series[i] = s
		}
		all = append(all, one)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding the charts: %w", err)
	}
	return text, nil
}

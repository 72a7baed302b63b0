// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
)

var update = flag.Bool("update", false, "write the golden files")

// whole has a part of each kind.
func whole() Page {
	return Page{
		Title: "Replicas follow a load", Summary: "Two controllers on the same load.",
		Notes: []string{"Measured on 2 cores.", "Messages are counted at the publisher & the replicas."},
		Verdicts: []Verdict{
			{Name: "late messages", Limit: "at most 1 %", Measured: "0.2 %", Met: true},
			{Name: "replica-hours", Limit: "at most 2", Measured: "2.4"},
			{Name: "scale changes", Limit: "at most 10", Unknown: "the API server did not answer"},
		},
		Tables: []Table{{
			Caption: "Contenders",
			Columns: []Column{{Name: "controller"}, {Name: "late", Unit: "%", Numeric: true}},
			Rows:    [][]string{{"ours", "0.2"}, {"KEDA <default>", "0.9"}},
		}},
		Scatter: &Scatter{Title: "Cost and late messages", X: "replica-hours", Y: "late messages, %", Points: []Point{
			{"ours", 1, 0}, {"KEDA <default>", 3, 0.9}, {"fixed", 3, 0}, {"as good", 1, 0},
		}},
		Charts: []Chart{
			{Title: "Load", Unit: "messages/s", Series: []Series{
				{Name: "published", Seconds: []float64{0, 1, 2, 3}, Values: Known(5, 150, 150.25, 5)},
				{Name: "done", Seconds: []float64{0.5, 1.5, 2.5}, Values: []*float64{new(5.0), nil, new(12345.6)}},
			}},
			{
				Title: "Replicas", Start: time.Date(2026, 11, 23, 9, 0, 0, 0, time.FixedZone("", 3600)),
				Series: []Series{{Name: "running", Seconds: []float64{0, 120}, Values: Known(1, 3), Step: true}},
			},
			{Title: "Age", Unit: "s", Panels: true, Objective: new(60.0), Series: []Series{
				{Name: "ours", Seconds: []float64{0}, Values: Known(5)}, {Name: "KEDA", Seconds: []float64{0}, Values: Known(9)},
			}},
			{Title: "Backlog", Unit: "messages", Series: []Series{{Name: "not sampled"}}},
		},
	}
}

func written(t *testing.T, p Page) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, p.Write(&out))
	return out.String()
}

func TestThePageIsAsBefore(t *testing.T) {
	got := written(t, whole())
	for _, name := range []string{
		"uplot/LICENSE", "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "page.js", "page.css",
	} {
		text, err := assets.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, got, string(text), "%s is a part of the page", name)
		got = strings.Replace(got, string(text), "("+name+")", 1)
	}
	golden.Equal(t, *update, "page.html", []byte(got))
}

func TestTextsStayTexts(t *testing.T) {
	const hostile = "</script><script>alert(1)</script><!--\u2028<img src=x onerror=alert(1)>"
	p := whole()
	before := written(t, p)
	p.Title, p.Summary, p.Notes = hostile, hostile, []string{hostile}
	p.Verdicts = []Verdict{
		{Name: hostile, Limit: hostile, Measured: hostile},
		{Unknown: hostile},
		{Name: "met", Met: true, Measured: hostile},
	}
	p.Tables[0].Caption, p.Tables[0].Columns[0].Name, p.Tables[0].Rows[0][0] = hostile, hostile, hostile
	p.Scatter.Title, p.Scatter.X, p.Scatter.Y, p.Scatter.Points[1].Name = hostile, hostile, hostile, hostile
	p.Charts[0].Title, p.Charts[0].Unit, p.Charts[0].Series[0].Name = hostile, hostile, hostile
	got := written(t, p)
	for _, part := range []string{"<script", "</script", "<!--", "<img"} {
		require.Equal(t, strings.Count(before, part), strings.Count(got, part), "no text brings %s", part)
	}
	_, text, _ := strings.Cut(got, `<script type="application/json" id="curves">`)
	text, _, _ = strings.Cut(text, "</script>")
	var read []curves
	require.NoError(t, json.Unmarshal([]byte(text), &read))
	require.Equal(t, hostile, read[0].Title)
	require.Equal(t, hostile, read[0].Series[0].Name)
}

func TestAnInvalidPageIsNotWritten(t *testing.T) {
	series := func(seconds []float64, values []*float64) Page {
		return Page{Title: "t", Charts: []Chart{
			{Title: "load", Series: []Series{{Name: "in", Seconds: seconds, Values: values}}},
		}}
	}
	for name, test := range map[string]struct {
		page Page
		want string
	}{
		"a scatter alone": {
			Page{Title: "t", Scatter: &Scatter{}}, "a scatter is beside the first chart: add a chart",
		},
		"no title": {Page{}, "the page has no title: set Title"},
		"a row without a cell": {
			Page{Title: "t", Tables: []Table{{Caption: "c", Columns: make([]Column, 2), Rows: [][]string{{"a"}}}}},
			`row 1 of table "c" has 1 cells: give it one for each of 2 columns`,
		},
		"a value without a time": {
			series(nil, Known(1)), `chart "load", series "in": 0 times for 1 values: give each value its time`,
		},
		"times that go back": {
			series([]float64{1, 0}, Known(1, 2)), "time 2 is 0: sort the points by finite times",
		},
		"a time that is not a number": {
			series([]float64{math.NaN()}, Known(1)), "time 1 is NaN: sort the points by finite times",
		},
		"a value that is not a number": {
			series([]float64{1}, Known(math.NaN())), "value 1 is NaN: use nil for unknown",
		},
		"an infinite value": {
			series([]float64{0, 1}, Known(1, math.Inf(-1))), "value 2 is -Inf: use nil for unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.ErrorContains(t, test.page.Write(&out), test.want)
			require.Empty(t, out.String())
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestAFailedWriteIsReported(t *testing.T) {
	require.ErrorIs(t, whole().Write(fullDisk{}), errFull)
}

// make page-library writes the sums of the package that package-lock.json pins.
func TestTheLibraryIsAsVendored(t *testing.T) {
	sums, err := os.Open(filepath.Join("uplot", "SHA256SUMS"))
	require.NoError(t, err)
	defer sums.Close()
	files := 0
	for lines := bufio.NewScanner(sums); lines.Scan(); files++ {
		fields := strings.Fields(lines.Text())
		require.Len(t, fields, 2)
		text, err := assets.ReadFile("uplot/" + fields[1])
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		require.Equal(t, fields[0], hex.EncodeToString(sum[:]), "%s was edited: run make page-library", fields[1])
	}
	require.Equal(t, 3, files)
}

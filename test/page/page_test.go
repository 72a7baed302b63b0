// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

const hostile = "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>"

// sampled has values from which a test can tell the time: what is published at 80 s are 80 messages/s.
func sampled() page.Page {
	var seconds, published, done []float64
	for i := range 161 {
		at := float64(i)
		seconds, published, done = append(seconds, at), append(published, at), append(done, at*0.9)
	}
	unknown := page.Known(done...)
	for i := 40; i < 50; i++ {
		unknown[i] = nil
	}
	return page.Page{
		Title: "Replicas of a Function follow a load", Summary: "Two autoscalers on the same load, one after the other.",
		Notes: []string{"Measured on 2 cores. " + hostile},
		Verdicts: []page.Verdict{
			{Name: "late messages", Limit: "at most 1 %", Measured: "0.2 %", Met: true},
			{Name: "replica-hours", Limit: "at most 2", Measured: "2.4"},
			{Name: "scale changes", Limit: "at most 10", Unknown: "the API server did not answer"},
		},
		Tables: []page.Table{{
			Caption: "Contenders",
			Columns: []page.Column{{Name: "autoscaler"}, {Name: "late", Unit: "%", Numeric: true}},
			Rows:    [][]string{{"pulsar-autoscaler", "0.2"}, {hostile, "0.9"}},
		}, {
			Caption: "Settings",
			Columns: []page.Column{
				{Name: "CONTENDER"},
				{Name: "REPLICA-HOURS", Numeric: true},
				{Name: "LATE", Numeric: true},
				{Name: "CHANGES", Numeric: true},
				{Name: "COST", Numeric: true},
				{Name: "BEATS POLICY IN"},
				{Name: "SETTING"},
			},
			Rows: [][]string{{
				"pulsar-autoscaler", "143.2 (134.1 to 144.5)", "7.20% (1.87% to 13.13%)", "375 (347 to 375)",
				"7.16 (6.71 to 7.23)", "replica-hours", "msgBacklogThreshold 735 = capacity * objective / 2",
			}},
		}},
		Scatter: &page.Scatter{
			Title: "Cost and late messages", X: "replica-hours", Y: "late messages, %",
			Points: []page.Point{
				{Name: "pulsar-autoscaler", X: 10, Y: 0},
				{Name: "keda-default", X: 100, Y: 7.2},
				{Name: "fixed", X: 100},
				{Name: "keda-with-its-own-limits", X: 90, Y: 7.1},
				{Name: "hpa", X: 1},
			},
		},
		Charts: []page.Chart{
			{Title: "Load", Unit: "messages/s", Series: []page.Series{
				{Name: "published", Seconds: seconds, Values: page.Known(published...)},
				{Name: "done", Seconds: seconds, Values: unknown},
			}},
			{Title: "Replicas", Series: []page.Series{
				{Name: "desired", Seconds: []float64{0, 25.25, 120}, Values: page.Known(1, 5, 2), Step: true},
				{Name: "running", Seconds: []float64{0, 31, 124}, Values: page.Known(1, 5, 2), Step: true},
				{Name: hostile},
			}},
			{Title: "Last week", Unit: "messages/s", Start: time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC), Series: []page.Series{
				{Name: "arrived", Seconds: []float64{0, 86400, 7 * 86400}, Values: page.Known(100, 300, 50)},
			}},
			{Title: "Age of the oldest message", Unit: "s", Panels: true, Objective: new(60.0), Series: []page.Series{
				{Name: "pulsar-autoscaler", Seconds: seconds, Values: page.Known(done...)},
				{Name: "keda-default", Seconds: seconds, Values: page.Known(published...)},
				{Name: "unscaled", Seconds: []float64{0, 160}, Values: page.Known(1, 300)},
			}},
			{Title: "Not sampled"},
		},
	}
}

func TestThePageInABrowser(t *testing.T) {
	chromium := start(t)
	for name, test := range map[string]func(*testing.T, tab){
		"opens without a complaint":         opensWithoutComplaints,
		"loads nothing":                     loadsNothing,
		"reads and zooms by mouse":          followsTheMouse,
		"reads and zooms by keyboard":       followsTheKeyboard,
		"follows the light and dark scheme": followsTheScheme,
		"prints all charts on light paper":  prints(7),
		"cuts nothing off at any width":     cutsNothingOff,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(chromium, t, sampled())) })
	}
}

func opensWithoutComplaints(t *testing.T, one tab) {
	require.Equal(t, float64(6), one.number("document.querySelectorAll('.plot canvas').length"))
	require.Zero(t, one.number("performance.getEntriesByType('resource').length"), "it loads nothing")
	require.Equal(t, "undefined", one.text("typeof window.broken"), "texts are no scripts")
	require.Empty(t, one.complaints())
}

func loadsNothing(t *testing.T, one tab) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	for name, attempt := range map[string]string{
		"a request": "fetch('" + server.URL + "').then(() => 'loaded', () => 'refused')",
		"an image": "new Promise((done) => { const image = new Image(); image.onload = () => done('loaded'); " +
			"image.onerror = () => done('refused'); image.src = '" + server.URL + "/a.png' })",
		"a script": "new Promise((done) => { const script = document.createElement('script'); " +
			"script.onload = () => done('loaded'); script.onerror = () => done('refused'); " +
			"script.src = '" + server.URL + "/a.js'; document.body.append(script) })",
	} {
		require.Equal(t, "refused", one.text(attempt), name)
	}
	require.Equal(t, "undefined", one.text("(() => { const script = document.createElement('script'); "+
		"script.textContent = 'window.broken = true'; document.body.append(script); return typeof window.broken })()"))
	require.Zero(t, requests.Load())
}

func followsTheMouse(t *testing.T, one tab) {
	one.hover("0", "0.5")
	require.Equal(t, "1:20: published 80 messages/s, done 72 messages/s", one.reading("0"))
	require.Contains(t, one.reading("1"), "1:20: desired 5, running 5", "charts of the same start share the cursor")
	require.Contains(t, one.reading("3"), "1:20: pulsar-autoscaler 72 s, keda-default 80 s", "with all panels")
	require.NotContains(t, one.reading("2"), "2026", "others do not")
	one.hover("0", "0.28125")
	require.Contains(t, one.reading("0"), "published 45 messages/s, done unknown")

	fromX, y := one.point("0", "0.25")
	toX, _ := one.point("0", "0.5")
	one.do(chromedp.DragAndDropXY(fromX, y, toX, y))
	one.hover("0", "0.5")
	require.Contains(t, one.reading("0"), "published 60", "from 40 s to 80 s")
	one.hover("1", "0.95")
	require.Contains(t, one.reading("1"), "1:18", "charts of the same start share the zoom")
	one.screenshot("zoomed.png")

	x, y := one.point("1", "0.5")
	one.do(chromedp.MouseClickXY(x, y, chromedp.ClickCount(2)))
	one.hover("0", "0.5")
	require.Contains(t, one.reading("0"), "published 80", "a double click shows all")
	require.Empty(t, one.complaints())
}

func followsTheKeyboard(t *testing.T, one tab) {
	const active = "document.activeElement.className + ' ' + document.activeElement.getAttribute('aria-labelledby')"
	for range 10 {
		one.do(chromedp.KeyEvent(kb.Tab))
		if one.text(active) == "plot chart-0" {
			break
		}
	}
	require.Equal(t, "plot chart-0", one.text(active), "the Tab key reaches the chart")
	require.Equal(t, "Load messages/s", one.name("application"), "a screen reader names the chart")
	require.Equal(t, "polite", one.text("document.querySelector('.reading').ariaLive"))
	press := func(keys, want string) {
		t.Helper()
		one.do(chromedp.KeyEvent(keys))
		require.Equal(t, want, one.reading("0"), "after %q", keys)
	}
	press(kb.ArrowRight, "0:00: published 0 messages/s, done 0 messages/s")
	press(kb.ArrowRight, "0:02: published 2 messages/s, done 1.8 messages/s")
	press(kb.End, "2:40: published 160 messages/s, done 144 messages/s")
	one.do(chromedp.KeyEvent(kb.ArrowLeft, chromedp.KeyModifiers(kb.ModifierShift)))
	require.Equal(t, "2:20: published 140 messages/s, done 126 messages/s", one.reading("0"), "ten times as far")
	press(kb.End, "2:40: published 160 messages/s, done 144 messages/s")
	press(kb.ArrowLeft, "2:38: published 158 messages/s, done 142.2 messages/s")
	one.do(chromedp.KeyEvent("++")) // a quarter of all, up to the end
	press(kb.Home, "2:00: published 120 messages/s, done 108 messages/s")
	press(kb.ArrowRight, "2:01: published 121 messages/s, done 108.9 messages/s")
	one.do(chromedp.KeyEvent(kb.Escape))
	press(kb.Home, "0:00: published 0 messages/s, done 0 messages/s")

	one.do(run("document.querySelector('details summary').focus()"), chromedp.KeyEvent(kb.Enter))
	require.Contains(t, one.text("document.querySelector('details').innerText"), "1:20\t80\t72")
	require.Empty(t, one.complaints())
}

// drawn counts the pixels of a color in the first chart.
func drawn(rgb string) string {
	return "(() => { const { width, height } = document.querySelector('canvas'); " +
		"const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true }); " +
		"copy.drawImage(document.querySelector('canvas'), 0, 0); const { data } = copy.getImageData(0, 0, width, height); " +
		"const wanted = [" + rgb + ", 255]; let n = 0; " +
		"for (let i = 0; i < data.length; i += 4) n += wanted.every((c, j) => data[i + j] === c); return n })()"
}

const (
	lightBlue = "0, 114, 178"
	darkBlue  = "86, 180, 233"
	paper     = "getComputedStyle(document.body).backgroundColor"
)

func followsTheScheme(t *testing.T, one tab) {
	for _, scheme := range []struct{ name, paper, blue, other string }{
		{"light", "rgb(255, 255, 255)", lightBlue, darkBlue},
		{"dark", "rgb(20, 23, 28)", darkBlue, lightBlue},
		{"light", "rgb(255, 255, 255)", lightBlue, darkBlue},
	} {
		one.scheme(scheme.name)
		require.Equal(t, scheme.paper, one.text(paper))
		require.Greater(t, one.number(drawn(scheme.blue)), 10.0, "the curve of the %s scheme", scheme.name)
		require.Zero(t, one.number(drawn(scheme.other)), "no curve of another")
		one.hover("0", "0.6")
		one.screenshot(scheme.name + ".png")
	}
	require.Empty(t, one.complaints())
}

// cut lists what is wider than the window, or than the element that has it: texts of the page, and of pictures.
const cut = `(() => {
	const wide = document.documentElement.clientWidth
	const out = [...document.querySelectorAll('main *')].filter((one) => {
		const box = one.getBoundingClientRect()
		if (box.width === 0 || one.closest('details, .uplot')) return false
		const around = one.closest('svg')?.getBoundingClientRect() ?? { left: 0, right: wide }
		return box.left < around.left - 1 || box.right > Math.min(around.right, wide) + 1 ||
			(getComputedStyle(one).overflowX !== 'visible' && one.scrollWidth > one.clientWidth + 1)
	}).map((one) => one.tagName + ' ' + one.textContent.trim().slice(0, 40))
	if (document.documentElement.scrollWidth > wide) out.push('the page')
	return out.join('; ')
})()`

func cutsNothingOff(t *testing.T, one tab) {
	for _, scheme := range []string{"light", "dark"} {
		one.scheme(scheme)
		for _, width := range []int64{390, 1280, 1600} {
			one.resize(width)
			one.screenshot(scheme + "-" + strconv.FormatInt(width, 10) + ".png")
			require.Empty(t, one.text(cut), "%d pixels, %s", width, scheme)
		}
	}
	require.Empty(t, one.complaints())
}

// prints expects drawings: all charts, and the scatter.
func prints(drawings int) func(t *testing.T, one tab) {
	return func(t *testing.T, one tab) {
		one.scheme("dark")
		const width = "document.querySelectorAll('.uplot')[1].clientWidth" // the first is beside the scatter
		before := one.number(width)
		one.do(run("addEventListener('beforeprint', () => queueMicrotask(() => { " +
			"window.printed = " + drawn(lightBlue) + "; window.printedWidth = " + width + " }))"))
		pdf, err := chromedp.Run(one.ctx, chromedp.PrintToPDF())
		require.NoError(t, err)
		one.keep("page.pdf", pdf)
		require.Equal(t, drawings, grids(t, pdf), "all charts are in the PDF, and the scatter")
		sheets := bytes.Count(pdf, []byte("/Type /Page\n"))
		require.Positive(t, sheets)
		require.LessOrEqual(t, sheets, 2)
		require.Greater(t, one.number("window.printed"), 10.0, "paper is light")
		require.Equal(t, 680.0, one.number("window.printedWidth"), "paper is narrow")
		one.scheme("dark")
		require.Greater(t, one.number(drawn(darkBlue)), 10.0, "the screen is dark again")
		require.Equal(t, before, one.number(width), "the screen is wide again")
		require.Empty(t, one.complaints())
	}
}

// grids counts the drawings of a PDF with lines in the color of a grid on paper.
func grids(t *testing.T, pdf []byte) (n int) {
	t.Helper()
	const color = ".9098 .9216 .9373 RG"
	for _, part := range bytes.Split(pdf, []byte("stream\n"))[1:] {
		reader, err := zlib.NewReader(bytes.NewReader(part))
		if err != nil {
			continue // the end of one, or no drawing
		}
		drawing, err := io.ReadAll(reader)
		require.NoError(t, err)
		if bytes.Contains(drawing, []byte(color)) {
			n++
		}
	}
	return n
}

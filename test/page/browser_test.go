// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/browser"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

const (
	width  = 1000
	height = 1500
)

// start returns the context of a browser.
func start(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("needs Chromium")
	}
	path, err := browser.Find(t.Context(), os.Stderr)
	require.NoError(t, err)
	deadline, cancel := context.WithTimeout(t.Context(), cluster.WaitLimit)
	t.Cleanup(cancel)
	ctx, end := browser.Launch(deadline, path, width, height)
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// tab shows a page.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // it is the tab's handle
	// complaints are what the console said until now.
	complaints func() []string
}

func open(chromium context.Context, t *testing.T, p page.Page) tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, p.Write(out))
	require.NoError(t, out.Close())

	ctx, cancel := chromedp.NewContext(chromium)
	t.Cleanup(cancel)
	messages := chromedp.Console(ctx)
	one := tab{t: t, ctx: ctx, complaints: func() (all []string) {
		const end = "the test has seen enough"
		require.NoError(t, chromedp.Do(ctx, run("console.log('"+end+"')")))
		for message, err := range messages {
			require.NoError(t, err)
			if message.Text == end {
				break
			}
			all = append(all, message.String())
		}
		return all
	}}
	one.do(chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+file))
	return one
}

// run evaluates what has no result.
func run(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](script + "; undefined")
}

func (o tab) do(steps ...chromedp.Action[chromedp.Void]) {
	o.t.Helper()
	require.NoError(o.t, chromedp.Do(o.ctx, steps...))
}

// text is a JavaScript expression's.
func (o tab) text(expression string) string {
	o.t.Helper()
	got, err := chromedp.Run(o.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	require.NoError(o.t, err)
	return got
}

// number is a JavaScript expression's.
func (o tab) number(expression string) float64 {
	o.t.Helper()
	got, err := chromedp.Run(o.ctx, chromedp.Evaluate[float64](expression, chromedp.EvalAwaitPromise))
	require.NoError(o.t, err)
	return got
}

// point is a share of the width of a chart's area, in the middle of its height.
func (o tab) point(chart, share string) (x, y float64) {
	o.t.Helper()
	area := "document.querySelectorAll('.u-over')[" + chart + "].getBoundingClientRect()"
	return o.number(area + ".left + " + area + ".width * " + share), o.number(area + ".top + " + area + ".height / 2")
}

func (o tab) hover(chart, share string) {
	o.t.Helper()
	x, y := o.point(chart, share)
	o.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	o.settle()
}

// reading is the line below a chart, which a screen reader says.
func (o tab) reading(chart string) string {
	o.t.Helper()
	return o.text("document.querySelectorAll('.reading')[" + chart + "].textContent")
}

// name is what a screen reader calls the first element of a role.
func (o tab) name(role string) string {
	o.t.Helper()
	tree, err := chromedp.Call(o.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(o.t, err)
	for _, node := range tree.Nodes {
		if node.Role != nil && string(node.Role.Value) == strconv.Quote(role) {
			name, err := strconv.Unquote(string(node.Name.Value))
			require.NoError(o.t, err)
			return name
		}
	}
	return ""
}

func (o tab) scheme(name string) {
	o.t.Helper()
	_, err := chromedp.Call(o.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	require.NoError(o.t, err)
	o.settle()
}

func (o tab) resize(width int64) {
	o.t.Helper()
	o.do(chromedp.EmulateViewport(width, height))
	o.settle()
}

// settle waits until charts are drawn again, which is in the frame after.
func (o tab) settle() {
	o.t.Helper()
	o.text("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(''))))")
}

// keep writes an artifact: to a directory that stays when the test runs with -artifacts.
func (o tab) keep(name string, content []byte) {
	o.t.Helper()
	require.NotEmpty(o.t, content)
	require.NoError(o.t, os.WriteFile(filepath.Join(o.t.ArtifactDir(), name), content, 0o600))
}

func (o tab) screenshot(name string) {
	o.t.Helper()
	image, err := chromedp.Run(o.ctx, chromedp.FullScreenshot(100))
	require.NoError(o.t, err)
	o.keep(name, image)
}

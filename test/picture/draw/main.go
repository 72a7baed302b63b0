// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/browser"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/picture"
)

const (
	width, height = 1000, 800
	// patience is for a busy machine.
	patience = 5 * time.Minute
	// still removes what only helps to use the page, and the tables, and waits until the page is laid out again.
	still = `document.querySelectorAll('details, .keys, .reading, section').forEach((one) => one.remove());
		new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(''))))`
)

func main() { command.Main("draw", draw) }

func draw(ctx context.Context, args []string, _, progress io.Writer) error {
	if len(args) != 2 { //nolint:mnd // the page and the picture
		return errors.New("name an HTML page and the PNG file to write")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	page, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	file, err := filepath.Abs(args[0])
	if err != nil {
		return fmt.Errorf("finding the page: %w", err)
	}
	path, err := browser.Find(ctx, progress)
	if err != nil {
		return err
	}
	chromium, end := browser.Launch(ctx, path, width, height)
	defer end()
	err = chromedp.Do(chromium, chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+file))
	if err != nil {
		return fmt.Errorf("opening the page: %w", err)
	}
	if _, err := chromedp.Run(chromium, chromedp.Evaluate[string](still, chromedp.EvalAwaitPromise)); err != nil {
		return fmt.Errorf("removing the tables: %w", err)
	}
	png, err := chromedp.Run(chromium, chromedp.FullScreenshot(100)) // of quality 100 it is a PNG
	if err != nil {
		return fmt.Errorf("drawing the page: %w", err)
	}
	return output.File(args[1], picture.Mark(png, picture.Headings(page)))
}

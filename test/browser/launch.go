// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"

	"github.com/chromedp/chromedp"
)

// Launch returns the context of a Chromium with a window of this size in pixels, which starts with its first use, and
// what ends it.
func Launch(ctx context.Context, path string, width, height int) (context.Context, context.CancelFunc) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.WindowSize(width, height), chromedp.DisableGPU,
		chromedp.NoSandbox) // root cannot have one, nor others where user namespaces are restricted; the pages are ours
	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	tab, closeTab := chromedp.NewContext(allocator)
	return tab, func() {
		closeTab()
		end()
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// progressEvery is the interval between lines, and drawEvery that on a terminal, where a line replaces the last one.
	progressEvery = 10 * time.Second
	drawEvery     = 500 * time.Millisecond
	barWidth      = 20
	// clearLine clears a line of a terminal.
	clearLine = "\r\x1b[2K"
)

// Count is how much of a work is done. Its methods may be called from any goroutine.
type Count struct {
	done, all atomic.Int64
	unit      atomic.Value
}

// Of sets how much there is to do, such as 12 packages.
func (c *Count) Of(all int, unit string) {
	c.unit.Store(unit)
	c.all.Store(int64(all))
}

// Add adds to what is done.
func (c *Count) Add(n int) { c.done.Add(int64(n)) }

// share is what is done of all, from 0 to 1; false if it is not known.
func (c *Count) share() (float64, bool) {
	all := c.all.Load()
	if all <= 0 {
		return 0, false
	}
	return min(1, float64(c.done.Load())/float64(all)), true
}

// String is such as "3 of 12 packages, "; empty if it is not known.
func (c *Count) String() string {
	all := c.all.Load()
	if all <= 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d %s, ", min(c.done.Load(), all), all, c.unit.Load())
}

// Terminal is a progress writer on which Announce draws a bar.
type Terminal struct {
	mu  sync.Mutex // guards out
	out io.Writer
}

// Progress is what Announce writes to for a person at out: a *Terminal if it is one.
func Progress(out io.Writer) io.Writer {
	if !IsTerminal(out) {
		return out
	}
	return &Terminal{out: out}
}

// IsTerminal reports whether lines at out can be overwritten.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Write writes whole lines over the bar.
func (t *Terminal) Write(lines []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := io.WriteString(t.out, clearLine); err != nil {
		return 0, err
	}
	return t.out.Write(lines)
}

// draw replaces the bar.
func (t *Terminal) draw(share float64, known bool, text string) {
	bar := ""
	if known {
		full := int(share * barWidth)
		bar = "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "] "
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = io.WriteString(t.out, clearLine+"\x1b[?7l"+bar+text+"\x1b[?7h") // a reader that has gone stops no work
}

// Announce runs work and reports it to progress (nil for none): what at once, e.g. "building etcd: about 1 minute on 2
// cores", the elapsed time with what work counts every 10 s, or a bar on a Terminal, and the end.
func Announce(ctx context.Context, progress io.Writer, what string,
	work func(ctx context.Context, count *Count) error,
) error {
	progress = orDiscard(progress)
	say(progress, "%s", what)
	count, start, done := &Count{}, time.Now(), make(chan error, 1)
	elapsed := func() time.Duration { return time.Since(start).Round(time.Second) }
	go func() { done <- work(ctx, count) }()
	terminal, isTerminal := progress.(*Terminal)
	every := progressEvery
	if isTerminal {
		every = drawEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			outcome := "done"
			if err != nil {
				outcome = "gave up"
			}
			say(progress, "%s: %s after %s", what, outcome, elapsed())
			return err
		case <-ticker.C:
			text := fmt.Sprintf("%s: %s%s so far", what, count, elapsed())
			if !isTerminal {
				say(progress, "%s", text)
				continue
			}
			share, known := count.share()
			terminal.draw(share, known, text)
		}
	}
}

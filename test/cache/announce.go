// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"io"
	"os"
	"time"
)

// progressEvery is the interval between lines about a work.
const progressEvery = 10 * time.Second

// IsTerminal reports whether lines at out can be overwritten.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Announce runs work and reports it to progress (nil for none): what at once, e.g. "building etcd: about 1 minute on 2
// cores", the elapsed time every 10 s, and the end.
func Announce(ctx context.Context, progress io.Writer, what string, work func(ctx context.Context) error) error {
	progress = orDiscard(progress)
	say(progress, "%s", what)
	start, done := time.Now(), make(chan error, 1)
	elapsed := func() time.Duration { return time.Since(start).Round(time.Second) }
	go func() { done <- work(ctx) }()
	ticker := time.NewTicker(progressEvery)
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
			say(progress, "%s: %s so far", what, elapsed())
		}
	}
}

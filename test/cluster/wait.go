// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// waitLimit bounds a wait whose context has no deadline: on a busy machine the slowest thing waited for, the
// aggregator's back-off after an outage, takes 30 s.
const waitLimit = 5 * time.Minute

// WaitFor asks cond at once and then every so often until it says done. An error of cond ends the wait; trouble that
// may pass belongs into detail, which the error tells when time is up: that of ctx, or 5 minutes when ctx has no
// deadline. what completes "waiting for ...".
func WaitFor(ctx context.Context, what string, every time.Duration,
	cond func(ctx context.Context) (done bool, detail string, err error),
) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, waitLimit)
		defer cancel()
	}
	start := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := "never answered"
	for {
		done, detail, err := cond(ctx)
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			// The last call was cut short, which tells less than the one before.
			return fmt.Errorf("waiting for %s: %w after %s: %s", what, err, time.Since(start).Round(time.Millisecond), last)
		case err != nil:
			return fmt.Errorf("waiting for %s: %w", what, err)
		case done:
			return nil
		case ctx.Err() == nil || last == "never answered":
			// A detail that only tells of the end of ctx must not hide the last one with a cause.
			last = strings.TrimSpace(detail)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w after %s: %s", what, ctx.Err(), time.Since(start).Round(time.Millisecond),
				last)
		case <-ticker.C:
		}
	}
}

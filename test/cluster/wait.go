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

// WaitLimit bounds a wait whose context has no deadline: the slowest condition on a busy machine, the aggregator's
// back-off after an outage, takes 30 s.
const WaitLimit = 5 * time.Minute

// WaitFor calls cond at once and then at the interval until it returns true. An error of cond ends the wait. detail is
// for temporary failures: the error after the deadline of ctx, or after 5 minutes without one, has the last detail.
// what completes "waiting for ...".
func WaitFor(ctx context.Context, what string, every time.Duration,
	cond func(ctx context.Context) (done bool, detail string, err error),
) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, WaitLimit)
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
			// The last call was interrupted, so the detail before is more useful.
			return fmt.Errorf("waiting for %s: %w after %s: %s", what, err, time.Since(start).Round(time.Millisecond), last)
		case err != nil:
			return fmt.Errorf("waiting for %s: %w", what, err)
		case done:
			return nil
		case ctx.Err() == nil || last == "never answered":
			// A detail that only reports the end of ctx must not hide the last one with a cause.
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

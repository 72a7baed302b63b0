// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// journal records events in order.
type journal struct {
	mu     sync.Mutex
	events []string
}

func (j *journal) add(event string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event)
}

// until returns a part that runs until its context ends.
func (j *journal) until(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		j.add(name + " ends")
		return nil
	}
}

func TestRunEndsPartsInOrder(t *testing.T) {
	const delay = 5 * time.Second
	broken := errors.New("the cache is broken")
	for name, tt := range map[string]struct {
		fails error
		want  []string
		after time.Duration
	}{
		"drains, then ends the server before its background": {
			nil, []string{"drains", "server ends", "cache ends"}, time.Second + delay,
		},
		"ends everything without draining when a part fails": {broken, []string{"server ends"}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				cache := j.until("cache")
				if tt.fails != nil {
					cache = func(context.Context) error {
						<-time.After(time.Second)
						return tt.fails
					}
				} else {
					defer time.AfterFunc(time.Second, stop).Stop()
				}
				start := time.Now()
				err := Run(ctx, Parts{
					Serve: j.until("server"), Background: []func(context.Context) error{cache},
					Drain: func(ctx context.Context) {
						j.add("drains")
						select {
						case <-time.After(delay):
						case <-ctx.Done():
						}
					},
				})
				require.ErrorIs(t, err, tt.fails)
				require.Equal(t, tt.want, j.events)
				require.Equal(t, tt.after, time.Since(start))
			})
		})
	}
}

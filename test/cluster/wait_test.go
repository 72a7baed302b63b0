// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

func TestWaitFor(t *testing.T) {
	broken := errors.New("the object was deleted")
	cases := map[string]struct {
		every time.Duration // 0 is 1 s
		limit time.Duration // 0 is none
		cond  func(call int) (bool, string, error)
		calls int
		took  time.Duration
		says  string
		is    error
	}{
		"asks at once": {
			cond:  func(int) (bool, string, error) { return true, "", nil },
			calls: 1,
		},
		"asks until it is so": {
			cond:  func(call int) (bool, string, error) { return call == 3, "", nil },
			calls: 3, took: 2 * time.Second,
		},
		"goes on after an error": {
			cond: func(call int) (bool, string, error) {
				if call == 1 {
					return true, "", broken
				}
				return true, "", nil
			},
			calls: 2, took: time.Second,
		},
		"tells the last error when time is up": {
			limit: 1500 * time.Millisecond,
			cond:  func(int) (bool, string, error) { return false, "cup 1", broken },
			calls: 2, took: 1500 * time.Millisecond,
			says: "after 1.5s: cup 1: the object was deleted", is: context.DeadlineExceeded,
		},
		"tells the last detail when time is up": {
			limit: 2500 * time.Millisecond,
			cond:  func(call int) (bool, string, error) { return false, fmt.Sprint("too hot ", call), nil },
			calls: 3, took: 2500 * time.Millisecond,
			says: "waiting for tea: context deadline exceeded after 2.5s: too hot 3", is: context.DeadlineExceeded,
		},
		"gives up after five minutes without a deadline": {
			every: 50 * time.Second,
			cond:  func(int) (bool, string, error) { return false, "too hot", nil },
			calls: 7, took: 5 * time.Minute, says: "after 5m0s: too hot", is: context.DeadlineExceeded,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, start, calls := t.Context(), time.Now(), 0
				if test.limit > 0 {
					limited, cancel := context.WithTimeout(ctx, test.limit)
					defer cancel()
					ctx = limited
				}
				err := WaitFor(ctx, "tea", max(test.every, time.Second), func(context.Context) (bool, string, error) {
					calls++
					return test.cond(calls)
				})
				require.Equal(t, test.calls, calls)
				require.Equal(t, test.took, time.Since(start))
				if test.says == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, test.says)
				require.ErrorIs(t, err, test.is)
			})
		})
	}
}

func TestWaitForKeepsTheCauseWhenTheLastCallIsCutShort(t *testing.T) {
	for name, cutShort := range map[string]func(ctx context.Context) (bool, string, error){
		"that says so in a detail": func(ctx context.Context) (bool, string, error) { return false, ctx.Err().Error(), nil },
		"that fails": func(ctx context.Context) (bool, string, error) {
			return false, "", fmt.Errorf("asking the kettle: %w", ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			err := WaitFor(ctx, "tea", time.Millisecond, func(ctx context.Context) (bool, string, error) {
				calls++
				if calls == 1 {
					return false, "the kettle is cold", nil
				}
				cancel()
				return cutShort(ctx)
			})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, "the kettle is cold")
		})
	}
}

func TestWaitReadyEndsWithTheProcess(t *testing.T) {
	p, err := proc.Start(t.Context(), proc.Config{
		Name: "kettle", Path: "sh", Args: []string{"-c", "echo no water; exit 3"},
	})
	require.NoError(t, err)
	err = WaitReady(t.Context(), p, func(context.Context) (bool, string, error) {
		return false, "the kettle is cold", nil
	})
	require.ErrorIs(t, err, errEnded)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "the kettle is cold")
	require.ErrorContains(t, err, "the last lines of kettle:\nno water")
}

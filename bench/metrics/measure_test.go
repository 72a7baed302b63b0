// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errTest = errors.New("no")

func TestMeasureSendsAllRequestsWithAllClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		o, err := measure(t.Context(), effort{clients: 4, requests: 10, limit: time.Hour}, func(context.Context) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Millisecond)
			now.Add(-1)
			return nil
		})
		require.NoError(t, err)
		require.Len(t, o.waits, 10)
		require.Zero(t, o.failed)
		require.Equal(t, int64(4), most.Load(), "clients at the same time")
		require.Equal(t, 3*time.Millisecond, o.elapsed, "4, 4 and 2 requests of 1 ms each")
		for _, wait := range o.waits {
			require.Equal(t, time.Millisecond, wait)
		}
	})
}

func TestMeasureStopsAtTheLimitAndCountsRunningRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := measure(t.Context(), effort{clients: 2, requests: 1000, limit: 9 * time.Second},
			func(ctx context.Context) error {
				time.Sleep(2 * time.Second)
				return ctx.Err()
			})
		require.NoError(t, err)
		require.Len(t, o.waits, 10)
		require.Zero(t, o.failed)
		require.Equal(t, 10*time.Second, o.elapsed)
	})
}

func TestMeasureCountsFailuresWithoutDurations(t *testing.T) {
	var calls atomic.Int64
	o, err := measure(t.Context(), effort{clients: 3, requests: 9, limit: time.Hour}, func(context.Context) error {
		if calls.Add(1)%3 == 0 {
			return errTest
		}
		return nil
	})
	require.NoError(t, err)
	require.Len(t, o.waits, 6)
	require.Equal(t, 3, o.failed)
	require.ErrorIs(t, o.because, errTest)
}

func TestMeasureEndsARequestThatHangsAndCountsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := measure(t.Context(), effort{clients: 1, requests: 1, limit: time.Hour}, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		require.Equal(t, 1, o.failed)
		require.ErrorIs(t, o.because, context.DeadlineExceeded)
		require.Equal(t, requestTimeout, o.elapsed)
	})
}

func TestMeasureFailsWhenItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	_, err := measure(ctx, effort{clients: 2, requests: 1000, limit: time.Hour}, func(ctx context.Context) error {
		if calls.Add(1) == 5 {
			cancel()
		}
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, calls.Load(), int64(1000))
}

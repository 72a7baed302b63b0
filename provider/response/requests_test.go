// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package response

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// blocked works until it is released.
func blocked(release <-chan struct{}) func(context.Context) (int, error) {
	return func(context.Context) (int, error) {
		<-release
		return 7, nil
	}
}

func TestDoStopsWaiting(t *testing.T) {
	for name, tt := range map[string]struct {
		client time.Duration
		want   time.Duration
		reason Reason
		text   string
	}{
		"for work that hangs":                     {time.Minute, Timeout, TooSlow, "the scaler did not respond within 250ms"},
		"for a client that is gone":               {time.Millisecond, time.Millisecond, Canceled, "the client is gone"},
		"for work of a client that left long ago": {0, 0, Canceled, "the client is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				ctx, cancel := context.WithTimeout(t.Context(), tt.client)
				defer cancel()
				start := time.Now()
				_, err := Do(ctx, NewLimiter("scaler"), blocked(release))
				require.EqualError(t, err, tt.text)
				require.Equal(t, tt.reason, ReasonOf(err))
				require.Equal(t, tt.want, time.Since(start))
			})
		})
	}
}

// fill starts MaxConcurrent more requests, and returns a function that waits for them and returns their errors.
func fill(ctx context.Context, l *Limiter, release <-chan struct{}) (wait func() []error) {
	errs := make([]error, MaxConcurrent)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = Do(ctx, l, blocked(release)) })
	}
	synctest.Wait()
	return func() []error {
		group.Wait()
		return errs
	}
}

func TestRequestsAboveTheLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		firstEnd bool
		want     Reason
	}{
		"are queued":                     {true, ""},
		"fail while the first ones hang": {false, Busy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, release := NewLimiter("adapter"), make(chan struct{})
				fill(t.Context(), l, release)
				second := fill(t.Context(), l, release)
				if tt.firstEnd {
					close(release)
				} else {
					defer close(release)
				}
				for _, err := range second() {
					require.Equal(t, tt.want, ReasonOf(err), "%v", err)
				}
			})
		})
	}
}

func TestHangingRequestsKeepTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := NewLimiter("adapter"), make(chan struct{})
		fill(t.Context(), l, release)()
		_, err := Do(t.Context(), l, blocked(release))
		require.EqualError(t, err, "the adapter is overloaded: 400 requests are running")
		close(release)
		synctest.Wait()
		got, err := Do(t.Context(), l, blocked(release))
		require.NoError(t, err)
		require.Equal(t, 7, got)
	})
}

func TestAPanicReachesTheRequest(t *testing.T) {
	defer func() { require.Regexp(t, "(?s)^a bug\n.*requests_test.go", recover()) }()
	_, _ = Do(t.Context(), NewLimiter("adapter"), func(context.Context) (int, error) { panic("a bug") })
	require.Fail(t, "the panic was swallowed")
}

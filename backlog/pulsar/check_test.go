// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// stuckBroker answers in 20 ms, but for stuck topics, and for all while it hangs.
type stuckBroker struct {
	// mu guards the rest.
	mu     sync.Mutex
	hangs  bool
	checks int
	others int
}

func (b *stuckBroker) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	hangs := b.hangs || strings.Contains(req.URL.Path, "stuck")
	if req.URL.Path == checkPath {
		b.checks++
	} else {
		b.others++
	}
	b.mu.Unlock()
	if hangs {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	after(20 * time.Millisecond)
	return &http.Response{
		StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")),
	}, nil
}

func (b *stuckBroker) set(hangs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangs = hangs
}

// ask sends a request through the chain with the timeout of a call.
func ask(ctx context.Context, t *testing.T, sent http.RoundTripper, topic string) error {
	t.Helper()
	a := &attempt{limit: DefaultRequestTimeout}
	ctx, cancel := context.WithTimeout(withAttempt(ctx, a), DefaultRequestTimeout)
	defer cancel()
	resource := "http://broker:8080/admin/v2/persistent/a/b/" + topic
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, resource, http.NoBody)
	require.NoError(t, err)
	resp, err := sent.RoundTrip(req)
	if err == nil {
		require.NoError(t, resp.Body.Close())
	}
	return err
}

func TestStuckTopicsKeepNoOtherFromTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, c := &stuckBroker{}, testChain(16, 1000)
		sent := c.over(broker)
		ctx, cancel := context.WithCancel(t.Context())
		var neighbour sync.WaitGroup
		for range 4 { // a quarter of the places
			neighbour.Go(func() {
				for ctx.Err() == nil {
					_ = ask(ctx, t, sent, "stuck")
					after(time.Millisecond) // a refusal takes no time
				}
			})
		}
		refused := 0
		for range 60 {
			after(10 * time.Second)
			if ask(t.Context(), t, sent, "victim") != nil {
				refused++
			}
		}
		cancel()
		neighbour.Wait()
		t.Logf("%d of 60 requests for another topic fail, with %d checks", refused, broker.checks)
		require.Zero(t, refused)
		require.Less(t, broker.checks, broker.others)
		requireIdle(t, c)
	})
}

func TestAHostThatHangsIsProbedByChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, c := &stuckBroker{hangs: true}, testChain(16, 1000)
		sent := c.over(broker)
		for range failuresToOpen {
			require.ErrorIs(t, ask(t.Context(), t, sent, "topic"), context.DeadlineExceeded)
		}
		require.Equal(t, 1, broker.checks, "before it opened")
		require.Equal(t, 1, c.openHosts())
		for range 10 {
			after(time.Second)
			var open *openError
			require.ErrorAs(t, ask(t.Context(), t, sent, "topic"), &open)
		}
		require.Equal(t, failuresToOpen, broker.others, "no other request is sent meanwhile")
		require.Greater(t, broker.checks, 2)
		broker.set(false)
		after(maxProbe)
		require.NoError(t, ask(t.Context(), t, sent, "topic"))
		require.Zero(t, c.openHosts())
		requireIdle(t, c)
	})
}

func TestAHostThatHangsIsNotExcusedByACheckThatFindsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, c := &stuckBroker{hangs: true}, testChain(4, 1000)
		sent := c.over(broker)
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for i := range 16 { // more than the host has connections
			callers.Go(func() {
				after(time.Duration(i) * 137 * time.Millisecond)
				for ctx.Err() == nil {
					_ = ask(ctx, t, sent, "topic")
					after(100 * time.Millisecond) // a refusal takes no time
				}
			})
		}
		after(4 * DefaultRequestTimeout)
		require.Equal(t, 1, c.openHosts())
		cancel()
		callers.Wait()
		requireIdle(t, c)
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func testChain(conns, perSecond int) *hosts {
	waits := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "wait_seconds"})
	return newHosts(conns, perSecond, waits)
}

func hostURL(host string) *url.URL { return &url.URL{Scheme: "http", Host: host} }

var (
	good = outcome{kind: answered}
	bad  = outcome{kind: failed, reason: backlog.ErrUnreachable, cause: "connection refused"}
)

// after waits in the bubble's time.
func after(d time.Duration) { <-time.After(d) }

// sendsOne sends one request through the chain, and reports whether it was allowed.
func sendsOne(t *testing.T, c *hosts, host string, o outcome) bool {
	t.Helper()
	permit, open := c.allow(hostURL(host))
	if open != nil {
		return false
	}
	release, err := c.takeTurn(t.Context(), hostURL(host))
	require.NoError(t, err)
	release()
	permit.report(o)
	return true
}

// requireIdle checks that no request is still counted.
func requireIdle(t *testing.T, c *hosts) {
	t.Helper()
	require.Zero(t, c.inFlight.Load())
	require.Zero(t, c.waiting.Load())
	for name, host := range c.states {
		require.Zero(t, host.users, name)
		require.Empty(t, host.slots, name)
		require.False(t, host.probing, name)
	}
}

func TestRequestsToOneHostAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(3, 100_000)
		var flying, most atomic.Int64
		var group errgroup.Group
		for i := range 30 {
			group.Go(func() error {
				release, err := c.takeTurn(t.Context(), hostURL("broker:8080"))
				if err != nil {
					return err
				}
				if now := flying.Add(1); now > most.Load() {
					most.Store(now)
				}
				after(time.Duration(i+1) * time.Millisecond)
				flying.Add(-1)
				release()
				return nil
			})
		}
		synctest.Wait()
		require.Equal(t, int64(3), c.inFlight.Load())
		require.Equal(t, int64(27), c.waiting.Load())
		require.NoError(t, group.Wait())
		require.Equal(t, int64(3), most.Load())
		requireIdle(t, c)
	})
}

func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(1, 1)
		release, err := c.takeTurn(t.Context(), hostURL("broker:8080"))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err = c.takeTurn(short, hostURL("broker:8080"))
		require.ErrorIs(t, err, context.DeadlineExceeded, "no slot became free")
		release()

		require.True(t, sendsOne(t, c, "broker:8080", good), "the second of the second")
		start := time.Now()
		soon, cancelSoon := context.WithTimeout(t.Context(), time.Second/2)
		defer cancelSoon()
		_, err = c.takeTurn(soon, hostURL("broker:8080"))
		require.ErrorIs(t, err, errHeldBack, "its turn would come after the deadline")
		require.Zero(t, time.Since(start), "so it does not wait for it")
		gone, giveUp := context.WithCancel(t.Context())
		giveUp()
		_, err = c.takeTurn(gone, hostURL("broker:8080"))
		require.ErrorIs(t, err, context.Canceled)
		requireIdle(t, c)
	})
}

func TestRequestsToOneHostArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(16, 100)
		start := time.Now()
		for range 100 {
			require.True(t, sendsOne(t, c, "broker:8080", good))
		}
		require.Zero(t, time.Since(start), "a second's worth at once")
		for range 300 {
			require.True(t, sendsOne(t, c, "broker:8080", good))
		}
		require.InDelta(t, 3, time.Since(start).Seconds(), 1e-6)
		require.True(t, sendsOne(t, c, "other:8080", good))
	})
}

func TestWaitingRequestsAreWithdrawnWhenTheBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(1, 100)
		at := hostURL("broker:8080")
		holder, _ := c.allow(at)
		release, err := c.takeTurn(t.Context(), at)
		require.NoError(t, err)
		var sent atomic.Int64
		waiting := c.over(transportFunc(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			return nil, errors.New("not expected")
		}))
		var group errgroup.Group
		for range 5 {
			group.Go(func() error {
				resp, err := waiting.RoundTrip((&http.Request{URL: at}).WithContext(withAttempt(t.Context(), &attempt{})))
				if err == nil {
					return resp.Body.Close()
				}
				var open *openError
				if !errors.As(err, &open) {
					return fmt.Errorf("not held back: %w", err)
				}
				return nil
			})
		}
		synctest.Wait()
		require.NotNil(t, holder.report(outcome{kind: failed, retryAfter: maxProbe}))
		release()
		require.NoError(t, group.Wait())
		require.Zero(t, sent.Load())
		requireIdle(t, c)
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestHostsThatAreRememberedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(1, 100)
		release, err := c.takeTurn(t.Context(), hostURL("held:1"))
		require.NoError(t, err)
		for i := range 2 * maxHosts {
			require.True(t, sendsOne(t, c, fmt.Sprintf("host-%d:1", i), good))
			after(1)
		}
		require.Len(t, c.states, maxHosts)
		require.Contains(t, c.states, "http://held:1", "hosts in use stay")
		require.Contains(t, c.states, fmt.Sprintf("http://host-%d:1", 2*maxHosts-1))
		release()
		var releases []func()
		for i := range maxHosts {
			release, err := c.takeTurn(t.Context(), hostURL(fmt.Sprintf("used-%d:1", i)))
			require.NoError(t, err)
			releases = append(releases, release)
		}
		_, err = c.takeTurn(t.Context(), hostURL("one-more:1"))
		require.ErrorIs(t, err, errHeldBack)
		for _, release := range releases {
			release()
		}
		requireIdle(t, c)
	})
}

// TestTheChainNeverLosesCount sends requests that end in all ways, in random order.
func TestTheChainNeverLosesCount(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const conns = 4
			random := rand.New(rand.NewPCG(seed, 0))
			c := testChain(conns, 50)
			var flying atomic.Int64
			var group errgroup.Group
			for range 300 {
				wait := time.Duration(random.Int64N(int64(20 * time.Second)))
				took := time.Duration(random.Int64N(int64(3 * time.Second)))
				o := outcome{
					kind: outcomeKind(random.IntN(3)), retryAfter: time.Duration(random.Int64N(3)) * time.Second,
				}
				group.Go(func() error {
					after(wait)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					release := c.acquire(ctx, hostURL("broker:8080"))
					if release == nil {
						return nil
					}
					defer release(o)
					defer flying.Add(-1)
					if flying.Add(1) > conns {
						return errors.New("too many at once")
					}
					after(took)
					return nil
				})
			}
			require.NoError(t, group.Wait())
			requireIdle(t, c)
		})
	}
}

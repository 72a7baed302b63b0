// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

func testGate(conns, perSecond int) *gate {
	return newGate(conns, perSecond, prometheus.NewHistogram(prometheus.HistogramOpts{Name: "wait_seconds"}))
}

func hostURL(host string) *url.URL { return &url.URL{Scheme: "http", Host: host} }

var (
	answered = verdict{kind: hostAnswered}
	failed   = verdict{kind: hostFailed, reason: backlog.ErrUnreachable, cause: "connection refused"}
)

// after waits in the bubble's time.
func after(d time.Duration) { <-time.After(d) }

// asks sends one request through the gate, and says whether it was let through.
func asks(t *testing.T, g *gate, host string, v verdict) bool {
	t.Helper()
	p, closed, err := g.enter(t.Context(), hostURL(host))
	require.NoError(t, err)
	if p == nil {
		require.NotNil(t, closed)
		return false
	}
	p.leave(v)
	return true
}

// requireIdle checks that nobody was forgotten.
func requireIdle(t *testing.T, g *gate) {
	t.Helper()
	require.Zero(t, g.flying())
	require.Zero(t, g.queued())
	for name, h := range g.hosts {
		require.Zero(t, h.users, name)
		require.Empty(t, h.slots, name)
		require.False(t, h.probing, name)
	}
}

func TestRequestsToOneHostAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(3, 100_000)
		var flying, most atomic.Int64
		var group errgroup.Group
		for i := range 30 {
			group.Go(func() error {
				p, _, err := g.enter(t.Context(), hostURL("broker:8080"))
				if err != nil {
					return err
				}
				if now := flying.Add(1); now > most.Load() {
					most.Store(now)
				}
				after(time.Duration(i+1) * time.Millisecond)
				flying.Add(-1)
				p.leave(answered)
				return nil
			})
		}
		synctest.Wait()
		require.Equal(t, 3, g.flying())
		require.Equal(t, 27, g.queued())
		require.NoError(t, group.Wait())
		require.Equal(t, int64(3), most.Load())
		requireIdle(t, g)
	})
}

func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(1, 1)
		holder, _, err := g.enter(t.Context(), hostURL("broker:8080"))
		require.NoError(t, err)
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, _, err = g.enter(short, hostURL("broker:8080"))
		require.ErrorIs(t, err, context.DeadlineExceeded, "no slot came free")
		holder.leave(answered)

		require.True(t, asks(t, g, "broker:8080", answered), "the second of the second")
		start := time.Now()
		soon, cancelSoon := context.WithTimeout(t.Context(), time.Second/2)
		defer cancelSoon()
		_, _, err = g.enter(soon, hostURL("broker:8080"))
		require.ErrorIs(t, err, errHeldBack, "its turn would come after the deadline")
		require.Zero(t, time.Since(start), "so it does not wait for it")
		gone, giveUp := context.WithCancel(t.Context())
		giveUp()
		_, _, err = g.enter(gone, hostURL("broker:8080"))
		require.ErrorIs(t, err, context.Canceled)
		requireIdle(t, g)
	})
}

func TestRequestsToOneHostArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(16, 100)
		start := time.Now()
		for range 100 {
			require.True(t, asks(t, g, "broker:8080", answered))
		}
		require.Zero(t, time.Since(start), "a second's worth at once")
		for range 300 {
			require.True(t, asks(t, g, "broker:8080", answered))
		}
		require.InDelta(t, 3, time.Since(start).Seconds(), 1e-6)
		require.True(t, asks(t, g, "other:8080", answered))
	})
}

func TestWhoWaitsIsToldWhenTheHostIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(1, 100)
		var closed atomic.Int64
		holder, _, err := g.enter(t.Context(), hostURL("broker:8080"))
		require.NoError(t, err)
		var group errgroup.Group
		for range 5 {
			group.Go(func() error {
				_, c, err := g.enter(t.Context(), hostURL("broker:8080"))
				if c != nil {
					closed.Add(1)
				}
				return err
			})
		}
		synctest.Wait()
		holder.leave(verdict{kind: hostFailed, retryAfter: maxProbe})
		require.NoError(t, group.Wait())
		require.Equal(t, int64(5), closed.Load())
		requireIdle(t, g)
	})
}

func TestHostsThatAreRememberedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(1, 100)
		held, _, err := g.enter(t.Context(), hostURL("held:1"))
		require.NoError(t, err)
		for i := range 2 * maxHosts {
			require.True(t, asks(t, g, fmt.Sprintf("host-%d:1", i), answered))
			after(1)
		}
		require.Len(t, g.hosts, maxHosts)
		require.Contains(t, g.hosts, "http://held:1", "what is in use stays")
		require.Contains(t, g.hosts, fmt.Sprintf("http://host-%d:1", 2*maxHosts-1))
		held.leave(answered)
		var passes []*pass
		for i := range maxHosts {
			p, _, err := g.enter(t.Context(), hostURL(fmt.Sprintf("used-%d:1", i)))
			require.NoError(t, err)
			passes = append(passes, p)
		}
		_, _, err = g.enter(t.Context(), hostURL("one-more:1"))
		require.ErrorIs(t, err, errHeldBack)
		for _, p := range passes {
			p.leave(answered)
		}
		requireIdle(t, g)
	})
}

// TestTheGateNeverLosesCount sends requests that end in all ways in a random order.
func TestTheGateNeverLosesCount(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const conns = 4
			random := rand.New(rand.NewPCG(seed, 0))
			g := testGate(conns, 50)
			var flying atomic.Int64
			var group errgroup.Group
			for range 300 {
				wait, took := time.Duration(
					random.Int64N(int64(20*time.Second))), time.Duration(random.Int64N(int64(3*time.Second)))
				v := verdict{kind: verdictKind(random.IntN(3)), retryAfter: time.Duration(random.Int64N(3)) * time.Second}
				group.Go(func() error {
					after(wait)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					p, closed, err := g.enter(ctx, hostURL("broker:8080"))
					if p == nil {
						if (closed == nil) == (err == nil) {
							return errors.New("one of both has to say why")
						}
						return nil
					}
					defer p.leave(v)
					defer flying.Add(-1)
					if flying.Add(1) > conns {
						return errors.New("too many at once")
					}
					after(took)
					return nil
				})
			}
			require.NoError(t, group.Wait())
			requireIdle(t, g)
		})
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestAHostThatFailsIsTriedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(16, 100)
		start := time.Now()
		var tried []time.Duration
		for range 2400 { // two minutes
			if sendsOne(t, c, "broker:8080", bad) {
				tried = append(tried, time.Since(start))
			}
			after(50 * time.Millisecond)
		}
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{
			0, 50 * ms, 100 * ms, 1100 * ms, 3100 * ms, 7100 * ms, 15100 * ms, 31100 * ms, 61100 * ms, 91100 * ms,
		}, tried, "three times, and then after 1, 2, 4, 8, 16, 30, 30... seconds")
		require.Equal(t, 1, c.openHosts())
		require.True(t, sendsOne(t, c, "other:8080", good), "another host is no worse for it")
		_, open := c.allow(hostURL("BROKER.:8080"))
		require.Equal(t, &openState{since: start, reason: backlog.ErrUnreachable, cause: "connection refused"}, open)

		after(maxProbe)
		require.True(t, sendsOne(t, c, "broker:8080", good))
		require.Zero(t, c.openHosts())
		for range failuresToOpen {
			require.True(t, sendsOne(t, c, "broker:8080", bad), "one success closes it for all")
		}
		require.False(t, sendsOne(t, c, "broker:8080", bad))
		requireIdle(t, c)
	})
}

func TestTheBreakerOfAPortIsThatOfOneScheme(t *testing.T) {
	b := testChain(16, 100)
	allow := func(address string) (*permit, *openState) {
		u, err := url.Parse(address)
		require.NoError(t, err)
		return b.allow(u)
	}
	for range failuresToOpen { // a request in plain HTTP to the port of TLS, which ends the connection
		p, _ := allow("http://broker:8443")
		p.report(bad)
	}
	_, open := allow("http://broker:8443")
	require.NotNil(t, open)
	p, open := allow("https://broker:8443")
	require.Nil(t, open, "a wrong URL of one must not keep the others away")
	p.report(good)
}

func TestAHostWithoutRequestsIsNotBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(16, 100)
		for range failuresToOpen {
			sendsOne(t, c, "gone:8080", bad)
		}
		for range 3 * hostForgotten / maxProbe {
			after(maxProbe)
			require.True(t, sendsOne(t, c, "gone:8080", bad))
		}
		require.Equal(t, 1, c.openHosts(), "it is tried now and then")
		after(hostForgotten)
		require.Zero(t, c.openHosts(), "a removed broker would count permanently")
	})
}

func TestOnlyFailuresInARowOpenTheBreaker(t *testing.T) {
	c := testChain(16, 100_000)
	for i := range 100 {
		o := bad
		if i%failuresToOpen == failuresToOpen-1 {
			o = good
		}
		require.True(t, sendsOne(t, c, "broker:8080", o))
		require.True(t, sendsOne(t, c, "broker:8080", outcome{}), "an unknown outcome changes nothing")
	}
}

func TestBreakerRespectsRetryAfter(t *testing.T) {
	for name, tt := range map[string]struct{ requested, left time.Duration }{
		"ten seconds":                    {10 * time.Second, 10 * time.Second},
		"an hour, which is too long":     {time.Hour, maxProbe},
		"less than the wait for a probe": {time.Millisecond, firstProbe},
		"exactly the longest wait":       {maxProbe, maxProbe},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := testChain(16, 100)
				require.True(t,
					sendsOne(t, c, "broker:8080",
						outcome{kind: failed, reason: backlog.ErrUnavailable, cause: "it answers 429", retryAfter: tt.requested}))
				after(tt.left - 1)
				require.False(t, sendsOne(t, c, "broker:8080", good))
				after(1)
				require.True(t, sendsOne(t, c, "broker:8080", good))
			})
		})
	}
}

func TestOneRequestTriesAHostThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChain(16, 100)
		late, _ := c.allow(hostURL("broker:8080")) // under way while the breaker opens
		for range failuresToOpen {
			sendsOne(t, c, "broker:8080", bad)
		}
		after(firstProbe)
		probe, _ := c.allow(hostURL("broker:8080"))
		require.False(t, sendsOne(t, c, "broker:8080", good), "the probe is under way")
		require.NotNil(t, late.report(bad), "an old failure does not make it worse")
		require.Nil(t, probe.report(outcome{}), "a canceled probe has no outcome")
		require.True(t, sendsOne(t, c, "broker:8080", good), "so the next one may try")
		require.True(t, sendsOne(t, c, "broker:8080", good))
		requireIdle(t, c)
	})
}

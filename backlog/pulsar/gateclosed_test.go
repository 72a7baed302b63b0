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
		g := testGate(16, 100)
		start := time.Now()
		var tried []time.Duration
		for range 2400 { // two minutes
			if asks(t, g, "broker:8080", failed) {
				tried = append(tried, time.Since(start))
			}
			after(50 * time.Millisecond)
		}
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{
			0, 50 * ms, 100 * ms, 1100 * ms, 3100 * ms, 7100 * ms, 15100 * ms, 31100 * ms, 61100 * ms, 91100 * ms,
		}, tried, "three times, and then after 1, 2, 4, 8, 16, 30, 30... seconds")
		require.Equal(t, 1, g.backingOff())
		require.True(t, asks(t, g, "other:8080", answered), "another host is no worse for it")
		_, closed, err := g.enter(t.Context(), hostURL("BROKER.:8080"))
		require.NoError(t, err)
		require.Equal(t, &closure{since: start, reason: backlog.ErrUnreachable, cause: "connection refused"}, closed)

		after(maxProbe)
		require.True(t, asks(t, g, "broker:8080", answered))
		require.Zero(t, g.backingOff())
		for range failuresToClose {
			require.True(t, asks(t, g, "broker:8080", failed), "one success opens it for all")
		}
		require.False(t, asks(t, g, "broker:8080", failed))
		requireIdle(t, g)
	})
}

func TestAPortIsClosedForOneSchemeAlone(t *testing.T) {
	g := testGate(16, 100)
	enter := func(address string) (*pass, *closure) {
		u, err := url.Parse(address)
		require.NoError(t, err)
		p, closed, err := g.enter(t.Context(), u)
		require.NoError(t, err)
		return p, closed
	}
	for range failuresToClose { // somebody speaks plain HTTP to the port of TLS, which ends the connection
		p, _ := enter("http://broker:8443")
		p.leave(failed)
	}
	_, closed := enter("http://broker:8443")
	require.NotNil(t, closed)
	p, closed := enter("https://broker:8443")
	require.Nil(t, closed, "a wrong URL of one must not keep the others away")
	p.leave(answered)
	requireIdle(t, g)
}

func TestAHostThatNobodyAsksAnyMoreIsNotBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(16, 100)
		for range failuresToClose {
			asks(t, g, "gone:8080", failed)
		}
		for range 3 * hostForgotten / maxProbe {
			after(maxProbe)
			require.True(t, asks(t, g, "gone:8080", failed))
		}
		require.Equal(t, 1, g.backingOff(), "it is tried now and then")
		after(hostForgotten)
		require.Zero(t, g.backingOff(), "a broker that was taken away would count for good")
	})
}

func TestOnlyFailuresInARowCloseAHost(t *testing.T) {
	g := testGate(16, 100_000)
	for i := range 100 {
		v := failed
		if i%failuresToClose == failuresToClose-1 {
			v = answered
		}
		require.True(t, asks(t, g, "broker:8080", v))
		require.True(t, asks(t, g, "broker:8080", verdict{}), "what says nothing changes nothing")
	}
}

func TestAHostIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	for name, tt := range map[string]struct{ asked, left time.Duration }{
		"ten seconds":                    {10 * time.Second, 10 * time.Second},
		"an hour, which is too long":     {time.Hour, maxProbe},
		"less than what a probe waits":   {time.Millisecond, firstProbe},
		"exactly what it is waited most": {maxProbe, maxProbe},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := testGate(16, 100)
				require.True(t,
					asks(t, g, "broker:8080",
						verdict{kind: hostFailed, reason: backlog.ErrUnavailable, cause: "it answers 429", retryAfter: tt.asked}))
				after(tt.left - 1)
				require.False(t, asks(t, g, "broker:8080", answered))
				after(1)
				require.True(t, asks(t, g, "broker:8080", answered))
			})
		})
	}
}

func TestOneRequestTriesAHostThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(16, 100)
		late, _, err := g.enter(t.Context(), hostURL("broker:8080")) // under way while the host is closed
		require.NoError(t, err)
		for range failuresToClose {
			asks(t, g, "broker:8080", failed)
		}
		after(firstProbe)
		probe, _, err := g.enter(t.Context(), hostURL("broker:8080"))
		require.NoError(t, err)
		require.False(t, asks(t, g, "broker:8080", answered), "the probe is under way")
		require.NotNil(t, late.leave(failed), "an old failure does not make it worse")
		require.Nil(t, probe.leave(verdict{}), "a probe that was canceled says nothing")
		require.True(t, asks(t, g, "broker:8080", answered), "so the next one may try")
		require.True(t, asks(t, g, "broker:8080", answered))
		requireIdle(t, g)
	})
}

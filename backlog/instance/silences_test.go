// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestASilentInstanceIsAskedLessAndLess(t *testing.T) {
	s, now := newSilences(), time.Unix(1_800_000_000, 0)
	pod := backlog.InstanceAddress{ID: "pod-0", Address: netip.MustParseAddrPort("10.0.0.1:9094")}
	timeout := newFault(backlog.ErrUnreachable, pod, context.DeadlineExceeded, "no answer within 2s")
	start := now
	var asked []time.Duration
	for range 120 { // 20 minutes of polls
		if s.reason(pod, now) == nil {
			asked = append(asked, now.Sub(start))
			s.record(pod, timeout, now.Add(2*time.Second))
		}
		now = now.Add(10 * time.Second)
	}
	const second = time.Second
	require.Equal(t, []time.Duration{
		0, 10 * second, 40 * second, 90 * second, 180 * second, 350 * second, 660 * second, 970 * second,
	}, asked)
	require.ErrorIs(t, s.reason(pod, now), backlog.ErrUnreachable, "with its reason")
	renamed := pod
	renamed.ID = "pod-1"
	require.NoError(t, s.reason(renamed, now), "another pod got its address")

	now = now.Add(longestSilence)
	s.record(pod, nil, now)
	s.record(pod, timeout, now)
	require.NoError(t, s.reason(pod, now), "one timeout is none")
	for range 3 {
		s.record(pod, errors.New("connection refused"), now)
	}
	require.NoError(t, s.reason(pod, now), "it may be starting")
}

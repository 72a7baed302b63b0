// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
)

func TestACrowdNotesTheFirstReplicaOfEachAfterTheBurst(t *testing.T) {
	c := newCrowd(3)
	require.Equal(t, []string{"fn-0000", "fn-0001", "fn-0002"}, c.names)
	now, known := c.counts("fn-0000")
	require.True(t, known)
	require.Equal(t, fake.Counts{}, now)
	_, known = c.counts("fn-0003")
	require.False(t, known)

	c.scaled("fn-0001", 2, at(-3))
	require.Equal(t, []string{"fn-0001"}, c.early(), "before the burst")
	c.scaled("fn-0001", 0, at(-2))
	require.Empty(t, c.early())

	c.burst(at(0))
	c.scaled("fn-0001", 0, at(1))
	c.scaled("fn-0001", 1, at(2))
	c.scaled("fn-0001", 7, at(3))
	c.scaled("fn-0002", 4, at(5))
	now, _ = c.counts("fn-0001")
	require.Equal(t, fake.Counts{Published: burstMessages, Replicas: 7}, now)
	want := newAwakening([]time.Duration{2 * time.Second, 5 * time.Second}, 3)
	want.BurstRightSized = new(1)
	require.Equal(t, want, c.awakened())
	require.Empty(t, c.early())
}

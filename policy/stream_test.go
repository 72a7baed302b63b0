// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// ofStream is a reading of Stream consumers on a scalable topic, of which Pulsar reports the backlog only.
func ofStream(at time.Time, ready float64) backlog.Reading {
	notReported := backlog.Unknown(backlog.Errorf(backlog.ErrNotReported, "no counters"))
	r := reading(ready, 0)
	r.At, r.Type = at, backlog.Stream
	r.PublishRate, r.LatestPublishRate, r.DeliveryRate, r.ProcessRate = notReported, notReported, notReported, notReported
	r.Unacked, r.Undispatched, r.LeastUndispatched, r.Delayed = notReported, notReported, notReported, notReported
	r.Consumers = backlog.Unknown(backlog.ErrNotRequested)
	return r
}

func TestStreamScalesByItsBacklog(t *testing.T) {
	const needed = "the publish rate is unknown: not reported: no counters: use strategy BacklogPerReplica"
	for name, test := range map[string]struct {
		ready      float64
		strategies []v1alpha1.Strategy
		want       int32
		cappedBy   string
		hold       string
	}{
		"a backlog adds replicas": {ready: 650, strategies: []v1alpha1.Strategy{backlogStrategy(100)}, want: 7},
		"64 segments have a consumer each": {
			ready: 1e6, strategies: []v1alpha1.Strategy{backlogStrategy(100)}, want: 64,
			cappedBy: policy.CappedByPartitions,
		},
		"Capacity needs rates":              {ready: 650, want: 2, hold: needed},
		"RatePerReplica needs arrivals too": {ready: 650, strategies: []v1alpha1.Strategy{rateStrategy("5")}, want: 2, hold: needed},
	} {
		t.Run(name, func(t *testing.T) {
			in := asking(2, ofStream(noon(), test.ready), test.strategies...)
			in.Spec.MaxReplicas = 1000
			decision, _ := policy.Decide(in, policy.State{})
			require.Equal(t, test.want, decision.Replicas)
			require.Equal(t, test.cappedBy, decision.CappedBy)
			if test.hold == "" {
				require.Nil(t, decision.Hold)
				return
			}
			require.NotNil(t, decision.Hold)
			require.Equal(t, policy.Hold{Reason: policy.HoldLearning, Message: test.hold}, *decision.Hold)
		})
	}
}

// TestStreamKeepsItsSegmentsOverShortLulls simulates a day in which work for six replicas comes every 5 minutes. The
// broker merges segments after 5 min, at most 10 times in a lineage, so a change in each lull would use that up.
func TestStreamKeepsItsSegmentsOverShortLulls(t *testing.T) {
	const every = 5 * time.Minute
	current, state, removed := int32(1), policy.State{}, 0
	for at := noon(); at.Before(noon().Add(24 * time.Hour)); at = at.Add(10 * time.Second) {
		ready := 0.0
		if at.Sub(noon())%every < 4*time.Minute {
			ready = 600
		}
		in := asking(current, ofStream(at, ready), backlogStrategy(100))
		in.Now = at
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if decision.Replicas < current {
			removed++
		}
		current = decision.Replicas
	}
	require.Equal(t, int32(6), current)
	require.Zero(t, removed, "no lull saved the price of a change")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestTheLoadStepsUpAndDown(t *testing.T) {
	s := full()
	load, err := s.load().Schedule(nil)
	require.NoError(t, err)
	require.InDelta(t, s.low, load.Rate(0), 0)
	require.InDelta(t, s.low, load.Rate(s.calm-1), 0)
	require.InDelta(t, s.high, load.Rate(s.calm), 0)
	require.InDelta(t, s.high, load.Rate(s.fall()-1), 0)
	require.InDelta(t, s.low, load.Rate(s.fall()), 0)
}

func TestThePolicyThatIsShownIsTheOneThatIsCreated(t *testing.T) {
	for name, s := range map[string]scenario{"the full demo": full(), "the short demo": short()} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, strings.Count(s.manifest(), "\n"), 10, "ten lines are promised")
			p, err := s.policy()
			require.NoError(t, err)
			require.Equal(t, v1alpha1.KindAutoscalingPolicy, p.Kind)
			require.Equal(t, functionName, p.Spec.ScaleTargetRef.Name)
			require.Equal(t, s.objective, p.Spec.LatencyObjective.Duration)
			require.Equal(t, int32(1), *p.Spec.MinReplicas)
			require.Equal(t, s.maxReplicas, int(p.Spec.MaxReplicas))
			if s.window == 0 {
				require.Nil(t, p.Spec.Behavior, "the shipped window")
				return
			}
			seconds := *p.Spec.Behavior.ScaleDown.StabilizationWindowSeconds
			require.Equal(t, s.window, time.Duration(seconds)*time.Second)
		})
	}
}

func TestOver(t *testing.T) {
	s := full()
	// back is a demo with one replica ten seconds after the load fell, watched for longer.
	back := func(longer time.Duration) []sample {
		var samples []sample
		for at := time.Duration(0); at <= s.fall()+10*time.Second+longer; at += time.Second {
			replicas := 1
			if at > s.calm && at < s.fall()+10*time.Second {
				replicas = 5
			}
			samples = append(samples, of(at.Seconds(), replicas, replicas))
		}
		return samples
	}
	last := func(samples []sample, change func(*sample)) []sample {
		change(&samples[len(samples)-1])
		return samples
	}
	for name, test := range map[string]struct {
		samples []sample
		want    bool
	}{
		"not before it began":              {nil, false},
		"not while it is calm at first":    {back(0)[:15], false},
		"not at once after the scale-down": {back(0), false},
		"not just before the tail":         {back(s.tail - time.Second), false},
		"after the tail":                   {back(s.tail), true},
		"not while replicas are unknown":   {last(back(s.tail), func(one *sample) { one.SpecReplicas = nil }), false},
		"not while a second replica runs":  {last(back(s.tail), func(one *sample) { one.ReadyReplicas = new(2) }), false},
		"not while there is backlog":       {last(back(s.tail), func(one *sample) { one.Published = 1000 }), false},
		"after patience, with any replicas": {
			[]sample{of((s.fall() + patience).Seconds(), 5, 5)}, true,
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, s.over(test.samples)) })
	}
}

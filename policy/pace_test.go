// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// rests decides every 10 s for half an hour on topics that are polled as often as the decisions need them, and returns
// whether they are at rest after each.
func rests(change func(second int, in *policy.Input)) (atRest []bool) {
	state, at := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}, noon()
	var resting bool
	for second := 0; second < 1800; second += 10 {
		in := idle(2, second)
		in.Spec.MinReplicas = new(int32(2))
		in.Spec.LatencyObjective = metav1.Duration{Duration: 5 * time.Minute}
		if resting {
			in.Rested = 20 * time.Second
		}
		if next := at.Add(10*time.Second + in.Rested); !in.Now.Before(next) {
			at = next
		}
		in.Reading.At = at.Add(-time.Duration(at.Unix()%20) * 50 * time.Millisecond) // an answer takes time
		change(second, &in)
		_, state = policy.Decide(in, state)
		resting = state.Zero.Pace(in) == backlog.AtRest
		atRest = append(atRest, resting)
	}
	return atRest
}

func TestAFunctionIsAtRestWhenNothingDependsOnTheNextPoll(t *testing.T) {
	const never, always = 0, 180
	tests := map[string]struct {
		change func(second int, in *policy.Input)
		// since is the first decision at rest, of which there are 180, and until the first one after it that is not.
		since, until int
	}{
		"after ten idle minutes": {func(int, *policy.Input) {}, 60, always},
		"not with a short objective": {func(_ int, in *policy.Input) {
			in.Spec.LatencyObjective.Duration -= time.Second
		}, never, never},
		"not with a replica to remove": {func(_ int, in *policy.Input) { in.CurrentReplicas = 3 }, never, never},
		"not at zero, where messages wait for the poll": {func(_ int, in *policy.Input) {
			in.Spec.MinReplicas, in.CurrentReplicas = new(int32), 0
		}, never, never},
		"not without an exact count": {func(_ int, in *policy.Input) { in.Reading.ExactAt = time.Time{} }, never, never},
		"until messages arrive": {func(second int, in *policy.Input) {
			if second >= 900 {
				in.Reading.PublishRate = backlog.Known(0.1)
			}
		}, 60, 90},
		"until messages wait": {func(second int, in *policy.Input) {
			if second >= 900 {
				in.Reading.Total, in.Reading.Ready = backlog.Known(1), backlog.Known(1)
			}
		}, 60, 90},
		"until a topic is unknown": {func(second int, in *policy.Input) {
			if second >= 900 {
				in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
			}
		}, 60, 90},
		"until the backlog is unknown": {func(second int, in *policy.Input) {
			if second >= 900 {
				in.Unknown = backlog.ErrStale
			}
		}, 60, 90},
		"until the objective becomes short": {func(second int, in *policy.Input) {
			if second >= 900 {
				in.Spec.LatencyObjective = metav1.Duration{Duration: time.Minute}
			}
		}, 60, 90},
		"until a replica may be removed": {func(second int, in *policy.Input) {
			if second >= 900 {
				in.Spec.MinReplicas = new(int32(1))
			}
		}, 60, 90},
		"despite a failed poll": {func(second int, in *policy.Input) {
			if second >= 900 && second < 930 {
				in.Reading.Trouble = errors.New("connection refused")
			}
		}, 60, always},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for i, resting := range rests(test.change) {
				require.Equal(t, i >= test.since && i < test.until, resting, "decision %d", i)
			}
		})
	}
}

func TestTopicsAreNeededQuicklyAtZeroWithAShortObjective(t *testing.T) {
	tests := map[string]struct {
		change func(in *policy.Input)
		pace   backlog.Pace
	}{
		"below a minute":         {func(*policy.Input) {}, backlog.Quick},
		"not with a minute":      {func(in *policy.Input) { in.Spec.LatencyObjective.Duration++ }, backlog.Waking},
		"not with a replica":     {func(in *policy.Input) { in.CurrentReplicas = 1 }, backlog.Usual},
		"not without an answer":  {func(in *policy.Input) { in.Unknown = backlog.ErrTopicNotFound }, backlog.Waking},
		"not while switched off": {func(in *policy.Input) { in.Spec.MinReplicas = new(int32(1)) }, backlog.Usual},
		"not while frozen":       {func(in *policy.Input) { in.Frozen = &policy.Hold{} }, backlog.Usual},
		"not with many topics":   {func(in *policy.Input) { in.Reading.Coverage.Topics = 101 }, backlog.Waking},
		"not with unknown topics": {func(in *policy.Input) {
			in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
		}, backlog.Waking},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := idle(0, 1800)
			in.Spec.MinReplicas, in.Spec.LatencyObjective = new(int32), metav1.Duration{Duration: time.Minute - 1}
			test.change(&in)
			_, state := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(0)})
			require.Equal(t, test.pace, state.Zero.Pace(in))
		})
	}
}

func TestADecisionOnTopicsAtRestIsNoOtherOne(t *testing.T) {
	in := idle(2, 1800)
	in.Spec.MinReplicas = new(int32(2))
	in.Rested = 20 * time.Second
	in.Reading.At = in.Now.Add(-31 * time.Second)
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
	rested, _ := policy.Decide(in, state)
	in.Rested, in.Reading.At = 0, in.Now
	usual, _ := policy.Decide(in, state)
	usual.Service.At = rested.Service.At
	require.Equal(t, usual, rested, "no hold because of an old reading, which would be written to the status")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func (s *story) objectiveIs(d time.Duration) {
	s.o.Policy.Spec.LatencyObjective = metav1.Duration{Duration: d}
}

func TestAnObjectiveThatAScaleUpCannotMeetIsReported(t *testing.T) {
	started := func(seconds float64) func(*story) {
		return func(s *story) { s.d.State.Start = policy.Start{Seconds: seconds, Count: 2} }
	}
	for name, test := range map[string]struct {
		given         []func(*story)
		want, message string
	}{
		"no start was measured":  {nil, "Unknown/Pending", "not learned yet"},
		"one start was measured": {[]func(*story){func(s *story) { s.d.State.Start = policy.Start{Seconds: 99, Count: 1} }}, "Unknown/Pending", ""},
		"a start is short":       {[]func(*story){started(30)}, "True/Achievable", "latencyObjective leaves time"},
		"a start is long": {
			[]func(*story){started(52)},
			"False/ObjectiveTooShort",
			"replicas consume 77s after they are needed (start 52s, poll interval 10s, sync of the autoscaler 15s), and " +
				"latencyObjective is 60s: messages wait longer when the load rises fast. Set latencyObjective to 100s or more, " +
				"or make replicas start faster",
		},
		"the autoscaler lags": {
			[]func(*story){started(30), func(s *story) { s.o.Actuator.Lag = &metav1.Duration{Duration: 40 * time.Second} }},
			"False/ObjectiveTooShort",
			"replicas consume 80s after they are needed (start 30s, poll interval 10s, sync of the autoscaler 40s)",
		},
		"the controller writes itself": {
			[]func(*story){started(42), func(s *story) { byDirect(&s.o) }}, "True/Achievable", "",
		},
		"replicas wake from zero": {
			[]func(*story){started(52), func(s *story) { mayBeZero(&s.o) }},
			"False/ObjectiveTooShort",
			"when the load rises fast or replicas wake from zero",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			s.objectiveIs(time.Minute)
			for _, change := range test.given {
				change(s)
			}
			s.newEvents()
			s.goOn(10 * time.Second)
			require.Equal(t, test.want, s.says(v1alpha1.ConditionObjectiveAchievable))
			require.Contains(t, s.message(v1alpha1.ConditionObjectiveAchievable), test.message)
			require.Equal(t, "True/Scaling", s.says(v1alpha1.ConditionReady), "it warns, and stops nothing")
			if test.want == "False/ObjectiveTooShort" {
				require.Contains(t, s.newEvents(), "Warning ObjectiveTooShort "+s.message(v1alpha1.ConditionObjectiveAchievable))
				s.objectiveIs(100 * time.Second)
				s.goOn(10 * time.Second)
				require.Equal(t, "True/Achievable", s.says(v1alpha1.ConditionObjectiveAchievable), "as the message promised")
			}
		})
	}
}

func TestALearnedStartNearTheObjectiveDoesNotFlap(t *testing.T) {
	s := begun(t)
	s.objectiveIs(time.Minute)
	changes, last := 0, ""
	for i := range 40 {
		s.d.State.Start = policy.Start{Seconds: 33 + float64(i%5), Count: 2 + int32(i)} // 58 to 62 s
		s.goOn(10 * time.Second)
		if now := s.says(v1alpha1.ConditionObjectiveAchievable); now != last {
			changes, last = changes+1, now
		}
	}
	require.Equal(t, "False/ObjectiveTooShort", last)
	require.Equal(t, 2, changes)
}

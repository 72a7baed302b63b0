// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestAGracePeriodBelowACallIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		grace, most time.Duration
		perSecond   float64
		want        string
	}{
		"calls of 20 s and 5 s to end": {5 * time.Second, 0, 0.05, "False/GracePeriodTooShort"},
		"calls of 20 s and 30 s":       {30 * time.Second, 0, 0.05, "True/Undisturbed"},
		"short calls are repeated":     {0, 0, 2, "True/Undisturbed"},
		"Java waits for 10 s alone":    {12 * time.Second, 10 * time.Second, 0.05, "True/Undisturbed"},
		"less than Java would wait":    {5 * time.Second, 10 * time.Second, 0.05, "False/GracePeriodTooShort"},
		"the capacity is unknown":      {0, 0, 0, "True/Undisturbed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begun(t)
			s.o.Target.GracePeriod, s.o.Target.MostUsefulGrace = &test.grace, test.most
			if test.perSecond > 0 {
				s.d.State.Capacity = learned(test.perSecond)
			}
			s.goOn(10 * time.Second)
			require.Equal(t, test.want, s.says(v1alpha1.ConditionScalesWithoutRestart))
		})
	}
}

func TestAGracePeriodHasToBeLongerThanACallToCountAgain(t *testing.T) {
	s := begun(t)
	grace := 20 * time.Second
	s.o.Target.GracePeriod = &grace
	perSecond := func(rate float64) string {
		s.d.State.Capacity = learned(rate)
		s.goOn(10 * time.Second)
		return s.says(v1alpha1.ConditionScalesWithoutRestart)
	}
	require.Equal(t, "True/Undisturbed", perSecond(1.0/19))
	require.Equal(t, "False/GracePeriodTooShort", perSecond(1.0/21))
	require.Equal(t, "pods that are removed are killed after 20 s, in the middle of a call of about 21s, which another "+
		"replica repeats: set spec.pod.terminationGracePeriodSeconds to 42 or more",
		s.message(v1alpha1.ConditionScalesWithoutRestart))
	require.Equal(t, "False/GracePeriodTooShort", perSecond(1.0/19))
	require.Equal(t, "True/Undisturbed", perSecond(1.0/15))
}

func TestRestartsThatWereSeenAreReported(t *testing.T) {
	s := begun(t)
	s.d.State.Start.Restarts = 1
	s.goOn(10 * time.Second)
	require.Equal(t, "Unknown/NotChecked", s.says(v1alpha1.ConditionScalesWithoutRestart))
	require.Equal(t, "most replicas disconnected at recent changes of their number, and no field of the target says why: "+
		"see whether a change alters the template of its pods", s.message(v1alpha1.ConditionScalesWithoutRestart))
	s.o.Target.Disturbances = []plan.Disturbance{{Reason: v1alpha1.ReasonPreciseParallelism, Message: "remove it"}}
	s.goOn(10 * time.Second)
	require.Equal(t, "False/PreciseParallelism", s.says(v1alpha1.ConditionScalesWithoutRestart))
	s.o.Target.Disturbances, s.d.State.Start.Restarts = nil, 0
	s.goOn(10 * time.Second)
	require.Equal(t, "True/Undisturbed", s.says(v1alpha1.ConditionScalesWithoutRestart))
}

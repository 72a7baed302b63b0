// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

const (
	pollInterval = 10 * time.Second
	heartbeat    = 5 * time.Minute
)

// reporter writes the statuses of policies when they are due, as the controller does.
type reporter struct {
	observed []plan.Observed
	history  []report.History
	// writes are the times of all writes.
	writes []time.Time
}

// newReporter has policies with statuses that were all written at noon.
func newReporter(policies int, first v1alpha1.AutoscalingPolicyStatus) *reporter {
	r := &reporter{observed: make([]plan.Observed, policies), history: make([]report.History, policies)}
	for i := range r.observed {
		p := &v1alpha1.AutoscalingPolicy{Status: first}
		p.UID = types.UID(fmt.Sprintf("5d1c3b9e-%04x-4f6a-9d2e-%012x", i%7919, i))
		r.observed[i] = plan.Observed{Subject: plan.Subject{Now: noon(), Policy: p}, Memory: plan.Memory{Policies: policies}}
	}
	return r
}

// reconcile reconciles one policy.
func (r *reporter) reconcile(i int, now time.Time, after v1alpha1.AutoscalingPolicyStatus) (written bool) {
	o := &r.observed[i]
	o.Now = now
	if !report.Due(*o, r.history[i], after) {
		return false
	}
	r.history[i] = r.history[i].Reported(now, o.Policy.Status, after)
	o.Policy.Status = after
	r.writes = append(r.writes, now)
	return true
}

// most is the maximum number of writes within a number of seconds.
func (r *reporter) most(within time.Duration) (most int) {
	first := 0
	for last := range r.writes {
		for r.writes[last].Sub(r.writes[first]) >= within {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// statusAt is a status that was decided at a time, with this number of messages.
func statusAt(at time.Time, messages int64) v1alpha1.AutoscalingPolicyStatus {
	return v1alpha1.AutoscalingPolicyStatus{
		DesiredReplicas: new(int32(3)), Decision: &v1alpha1.Decision{Time: metav1.NewTime(at)},
		Signals: &v1alpha1.Signals{MeasuredAt: metav1.NewTime(at), ReadyMessages: &messages},
	}
}

func TestStatusesStayWithinTheirBudget(t *testing.T) {
	const perSecond = 40 // of 10,000 policies, in each ten seconds
	changing := func(second int) int64 { return int64(1000 + second%7*1000) }
	for name, tt := range map[string]struct {
		policies int
		backlog  func(second int) int64
	}{
		"1,000 policies, backlogs change":  {1_000, changing},
		"5,000 policies, backlogs change":  {5_000, changing},
		"10,000 policies, backlogs change": {10_000, changing},
		"10,000 policies, backlogs stay":   {10_000, func(int) int64 { return 1000 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReporter(tt.policies, statusAt(noon(), 0))
			const seconds = 400
			oldest := time.Duration(0)
			for second := 1; second <= seconds; second++ {
				now := noon().Add(time.Duration(second) * time.Second)
				for i := second % 10; i < tt.policies; i += int(pollInterval / time.Second) {
					r.reconcile(i, now, statusAt(now, tt.backlog(second)))
					oldest = max(oldest, now.Sub(r.observed[i].Policy.Status.Decision.Time.Time))
				}
			}
			require.Less(t, oldest, heartbeat+pollInterval, "the age of a decision")
			require.Less(t, len(r.writes), perSecond*seconds)
			require.Less(t, r.most(10*time.Second), perSecond*10)
			t.Logf("%.1f writes a second, at most %d in 10 s", float64(len(r.writes))/seconds, r.most(10*time.Second))
		})
	}
}

func TestChangedSignalsOfFewPoliciesAreWrittenOnceAMinute(t *testing.T) {
	r := newReporter(1, statusAt(noon(), 0))
	for second := 1; second <= 600; second++ {
		now := noon().Add(time.Duration(second) * time.Second)
		r.reconcile(0, now, statusAt(now, int64(second%13)*1000))
	}
	require.Len(t, r.writes, 10)
}

func TestABacklogOfMessagesInTransitIsWrittenOnceAHeartbeat(t *testing.T) {
	everyMinute := func(least, more int64) func(second int) int64 {
		return func(second int) int64 { return least + int64(second/60%2)*more }
	}
	for name, tt := range map[string]struct {
		published *float64
		messages  func(second int) int64
		want      int
	}{
		"replicas hold other messages each time":      {new(120.0), func(second int) int64 { return int64(second % 60) }, 2},
		"as many as are published in a second":        {new(20.0), everyMinute(0, 20), 2},
		"more than are published in a second":         {new(20.0), everyMinute(0, 21), 10},
		"and the rate of publishing is unknown":       {nil, everyMinute(0, 20), 10},
		"a tenth of the backlog, although it is more": {new(20.0), everyMinute(1000, 100), 2},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(second int) v1alpha1.AutoscalingPolicyStatus {
				status := statusAt(noon().Add(time.Duration(second)*time.Second), tt.messages(second))
				if tt.published != nil {
					status.Signals.PublishRate = new(v1alpha1.NewRate(*tt.published))
				}
				return status
			}
			r := newReporter(1, at(0))
			for second := 1; second <= 600; second++ {
				r.reconcile(0, noon().Add(time.Duration(second)*time.Second), at(second))
			}
			require.Len(t, r.writes, tt.want)
		})
	}
}

func TestARateThatMovedIsWrittenOnceAMinute(t *testing.T) {
	at := func(second int) v1alpha1.AutoscalingPolicyStatus {
		status := statusAt(noon().Add(time.Duration(second)*time.Second), 0)
		status.Signals.PublishRate = new(v1alpha1.NewRate(float64(100 + second%13*20)))
		return status
	}
	r := newReporter(1, at(0))
	for second := 1; second <= 600; second++ {
		r.reconcile(0, noon().Add(time.Duration(second)*time.Second), at(second))
	}
	require.Len(t, r.writes, 10)
}

// ready is a status with a condition Ready, decided at a time.
func ready(at time.Time, status metav1.ConditionStatus, reason, message string) v1alpha1.AutoscalingPolicyStatus {
	s := statusAt(at, 100)
	s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	return s
}

func TestAlternatingConditionsAreWrittenRarely(t *testing.T) {
	const unknown = metav1.ConditionUnknown
	undecided := func(s v1alpha1.AutoscalingPolicyStatus) v1alpha1.AutoscalingPolicyStatus {
		s.DesiredReplicas, s.Decision, s.Signals = nil, nil, nil
		return s
	}
	tests := map[string]struct {
		pass func(i int, now time.Time) v1alpha1.AutoscalingPolicyStatus
		// least and most writes in 60 reconciles, within ten minutes.
		least, most int
	}{
		"messages": {func(i int, now time.Time) v1alpha1.AutoscalingPolicyStatus {
			return ready(now, unknown, "A", fmt.Sprint("port ", i))
		}, 2, 3},
		"messages without a decision": {func(i int, now time.Time) v1alpha1.AutoscalingPolicyStatus {
			return undecided(ready(now, unknown, "A", fmt.Sprint("port ", i)))
		}, 2, 3},
		"reasons": {func(i int, now time.Time) v1alpha1.AutoscalingPolicyStatus {
			return ready(now, unknown, []string{"A", "B"}[i%2], "")
		}, 6, 36},
		"statuses": {func(i int, now time.Time) v1alpha1.AutoscalingPolicyStatus {
			return ready(now, []metav1.ConditionStatus{"True", "False"}[i%2], "A", "")
		}, 6, 36},
		"three reasons": {func(i int, now time.Time) v1alpha1.AutoscalingPolicyStatus {
			return undecided(ready(now, unknown, []string{"A", "B", "C"}[i%3], ""))
		}, 6, 36},
		"nothing": {func(_ int, now time.Time) v1alpha1.AutoscalingPolicyStatus {
			return undecided(ready(now, unknown, "A", ""))
		}, 1, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReporter(1, v1alpha1.AutoscalingPolicyStatus{})
			for i := range 60 {
				now := noon().Add(time.Duration(i) * pollInterval)
				r.reconcile(0, now, tt.pass(i, now))
			}
			require.GreaterOrEqual(t, len(r.writes), tt.least)
			require.LessOrEqual(t, len(r.writes), tt.most)
			require.LessOrEqual(t, r.most(time.Minute), 6, "in the first minute")
		})
	}
}

func TestReasonsThatAlternateFasterAreWrittenNoMoreOften(t *testing.T) {
	r := newReporter(1, v1alpha1.AutoscalingPolicyStatus{})
	for i := range 600 {
		now := noon().Add(time.Duration(i) * time.Second)
		r.reconcile(0, now, ready(now, metav1.ConditionUnknown, []string{"A", "B"}[i%2], ""))
	}
	require.LessOrEqual(t, len(r.writes), 6+3*10)
}

func TestFirstTransitionsAndDecisionsAreWrittenAtOnce(t *testing.T) {
	r := newReporter(1, v1alpha1.AutoscalingPolicyStatus{})
	at := func(second int) time.Time { return noon().Add(time.Duration(second) * time.Second) }
	for i, reason := range []string{"NoDataYet", "Pending", "Scaling", "Stale", "Scaling"} {
		require.True(t, r.reconcile(0, at(i), ready(at(i), metav1.ConditionUnknown, reason, "")), reason)
	}
	for i := range 60 { // no more changes of the reason alone
		r.reconcile(0, at(10+i), ready(at(10+i), metav1.ConditionUnknown, []string{"A", "B"}[i%2], ""))
	}
	last := r.observed[0].Policy.Status.Conditions[0].Reason
	other := map[string]string{"A": "B", "B": "A"}[last]
	require.False(t, r.reconcile(0, at(70), ready(at(70), metav1.ConditionUnknown, other, "")))
	decided := ready(at(70), metav1.ConditionUnknown, other, "")
	decided.DesiredReplicas = new(int32(4))
	require.True(t, r.reconcile(0, at(70), decided), "another number does not wait")
	decided.ObservedGeneration++
	require.True(t, r.reconcile(0, at(70), decided), "and so is another spec")
}

func TestTheNextObjectToCorrectIsWrittenAtOnce(t *testing.T) {
	conflicting := func(at time.Time, with string) v1alpha1.AutoscalingPolicyStatus {
		s := ready(at, metav1.ConditionFalse, v1alpha1.ReasonConflictingAutoscaler, with)
		s.Conditions[0].Type = v1alpha1.ConditionAutoscalerApplied
		return s
	}
	r := newReporter(1, conflicting(noon(), "HorizontalPodAutoscaler first scales it"))
	later := noon().Add(pollInterval)
	require.True(t, r.reconcile(0, later, conflicting(later, "HorizontalPodAutoscaler second scales it")))
	for i := range 60 {
		now := later.Add(time.Duration(i) * time.Second)
		r.reconcile(0, now, conflicting(now, fmt.Sprint("port ", i)))
	}
	require.LessOrEqual(t, r.most(time.Minute), 9, "a message that changes each time is no news")
}

func TestTheGuardsThatPassedAreWrittenWithTheDecisionOnly(t *testing.T) {
	r := newReporter(1, statusAt(noon(), 100))
	now := noon().Add(10 * time.Second)
	after := statusAt(now, 100)
	after.Decision.PassedGuards = []string{policy.HoldStabilizing}
	require.False(t, r.reconcile(0, now, after))
	after.Decision.Hold = &v1alpha1.Hold{Reason: policy.HoldUnknown}
	require.True(t, r.reconcile(0, now, after))
	require.Equal(t, []string{policy.HoldStabilizing}, r.observed[0].Policy.Status.Decision.PassedGuards)
}

func TestAFailedReconcileIsReportedOnceAndKeepsTheDecision(t *testing.T) {
	r := newReporter(1, ready(noon(), metav1.ConditionTrue, v1alpha1.ReasonScaling, ""))
	for i := range 60 {
		o := r.observed[0]
		o.Now = noon().Add(time.Duration(i+1) * pollInterval)
		after := report.Failed(o, fmt.Errorf("finding the target: attempt %d: %w", i, errors.New("timed out")))
		require.Equal(t, i == 0 || i == 30, r.reconcile(0, o.Now, after), "pass %d", i)
	}
	status := r.observed[0].Policy.Status
	require.Equal(t, noon(), status.Decision.Time.Time, "it is as old as before")
	require.Equal(t, int32(3), *status.DesiredReplicas)
	c := status.Conditions[0]
	require.Equal(t, "Ready Unknown ReconcileFailed", fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason))
	require.Equal(t, "retrying after an error: finding the target: attempt 30: timed out", c.Message)
}

func TestAStatusOfAClockThatWasAheadIsRenewed(t *testing.T) {
	r := newReporter(1, statusAt(noon().Add(time.Hour), 0))
	require.True(t, r.reconcile(0, noon(), statusAt(noon(), 0)))
}

func TestAStatusMayWaitForOtherDecisionsUnlessItIsReadOrAnswersAChange(t *testing.T) {
	another := statusAt(noon().Add(pollInterval), 0)
	another.DesiredReplicas = new(int32(4))
	limited := statusAt(noon().Add(pollInterval), 0)
	limited.Decision.CappedBy = "maxReplicas"
	for name, tt := range map[string]struct {
		mode       v1alpha1.Mode
		actuator   v1alpha1.Actuator
		after      v1alpha1.AutoscalingPolicyStatus
		generation int64
		waited     time.Duration
		want       bool
	}{
		"another number that the controller writes": {v1alpha1.ModeAuto, v1alpha1.ActuatorDirect, another, 0, 0, true},
		"another number that an autoscaler reads":   {v1alpha1.ModeAuto, v1alpha1.ActuatorHPA, another, 0, 0, false},
		"another number that a user's autoscaler reads": {
			v1alpha1.ModeRecommend, v1alpha1.ActuatorDirect, another, 0, 0, false,
		},
		"another cap of the same number":       {v1alpha1.ModeAuto, v1alpha1.ActuatorHPA, limited, 0, 0, true},
		"the answer to a change of the policy": {v1alpha1.ModeAuto, v1alpha1.ActuatorDirect, limited, 1, 0, false},
		"one that waited for almost a minute": {
			v1alpha1.ModeAuto, v1alpha1.ActuatorDirect, another, 0, time.Minute - 1, true,
		},
		"one that waited for a minute": {v1alpha1.ModeAuto, v1alpha1.ActuatorDirect, another, 0, time.Minute, false},
		"one that is not due": {
			v1alpha1.ModeAuto, v1alpha1.ActuatorDirect, statusAt(noon().Add(pollInterval), 0), 0, 0, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReporter(1, statusAt(noon(), 0)).observed[0]
			o.Now, o.Actuator.Type, o.Policy.Generation = noon().Add(pollInterval), tt.actuator, tt.generation
			o.Policy.Spec.Mode = tt.mode
			require.Equal(t, tt.want, report.MayWait(o, report.History{}, tt.after, o.Now.Add(-tt.waited)))
		})
	}
}

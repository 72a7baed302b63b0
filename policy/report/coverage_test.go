// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// measured is a target of three replicas with a reading, and its status after the decision.
func measured(r backlog.Reading) (plan.Observed, v1alpha1.AutoscalingPolicyStatus) {
	p := fixture.Policy()
	o := plan.Observed{
		Subject:  plan.Subject{Now: noon(), Policy: p, Target: &plan.Target{Replicas: new(int32(3))}},
		Measured: plan.Measured{Reading: &r, PollInterval: 10 * time.Second},
	}
	return o, decideOn(o)
}

func decideOn(o plan.Observed) v1alpha1.AutoscalingPolicyStatus {
	decision, state := policy.Decide(plan.Input(o), policy.State{Capacity: learned(100), Arrivals: arrivals(10)})
	return statusOf(o.Policy.Status, o, &decided{Decision: decision, State: state, Reading: *o.Reading})
}

func TestAStatusShowsMissingTopics(t *testing.T) {
	partial := fixture.Partial(reading(49_500, 100), backlog.ErrForbidden)
	o, status := measured(partial)
	require.Equal(t, &v1alpha1.Coverage{
		Topics: 100, KnownTopics: 99,
		Missing: []v1alpha1.MissingTopic{{Name: "persistent://public/default/in-7", Message: "permission missing"}},
	}, status.Signals.Coverage)
	require.Equal(t, int64(49_500), *status.Signals.ReadyMessages)
	require.Greater(t, *status.DesiredReplicas, int32(3))

	known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBacklogKnown)
	require.Equal(t, metav1.ConditionFalse, known.Status)
	require.Equal(t, v1alpha1.ReasonPartialAnswer, known.Reason)
	require.Contains(t, known.Message, "99 of 100 topics are known; missing: persistent://public/default/in-7")
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	require.Equal(t, metav1.ConditionFalse, ready.Status)
	require.Equal(t, v1alpha1.ReasonPartialAnswer, ready.Reason)

	o.Policy.Status = status
	desired, err := served.Desired(o.Policy)
	require.NoError(t, err, "a decision on a part is served")
	require.Equal(t, *status.DesiredReplicas, desired.Replicas)

	o.Now = o.Now.Add(time.Minute)
	require.False(t, report.Due(o, report.History{}, decideOn(o)))
	partial.Coverage.Known--
	o.Reading = &partial
	require.True(t, report.Due(o, report.History{}, decideOn(o)), "missing topics are refreshed with the signals")
}

// TestAnOutageAfterAPartialAnswerIsNoOlderThanItself: BacklogKnown has been False since the first topic was missing.
func TestAnOutageAfterAPartialAnswerIsNoOlderThanItself(t *testing.T) {
	r := fixture.Partial(reading(10, 10), backlog.ErrForbidden)
	o, status := measured(r)
	o.Policy.Status = status
	o.Now = o.Now.Add(48 * time.Hour)
	r.At, o.Reading = o.Now, &r
	o.Policy.Status = decideOn(o)
	o.Now = o.Now.Add(time.Minute)
	o.Reading, o.Unknown = nil, backlog.ErrUnreachable
	decision, state := policy.Decide(plan.Input(o), policy.State{ReadAt: r.At})
	o.Policy.Status = statusOf(o.Policy.Status, o, &decided{Decision: decision, State: state})

	known := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionBacklogKnown)
	require.Equal(t, v1alpha1.ReasonPulsarUnreachable, known.Reason)
	held, err := served.LastDesired(o.Policy)
	require.NoError(t, err)
	require.Equal(t, r.At, held.HeldSince)
}

func TestARefusedPushLeavesTheBacklogKnown(t *testing.T) {
	r := reading(0, 0)
	r.PushRefused = backlog.Errorf(backlog.ErrForbidden, "grant consume on namespace public/default")
	_, status := measured(r)
	_, without := measured(reading(0, 0))
	require.Equal(t, without.DesiredReplicas, status.DesiredReplicas)
	require.Equal(t, meta.FindStatusCondition(without.Conditions, v1alpha1.ConditionReady),
		meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady))
	known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBacklogKnown)
	require.Equal(t, metav1.ConditionTrue, known.Status)
	require.Equal(t, v1alpha1.ReasonPushRefused, known.Reason)
	require.Equal(t, "Pulsar answers for every input topic; brokers do not report its first message, for which it is "+
		"polled: permission missing: grant consume on namespace public/default", known.Message)
}

func TestAWholeReadingLeavesCoverageOut(t *testing.T) {
	_, status := measured(reading(10, 10))
	require.Nil(t, status.Signals.Coverage)
	require.True(t, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionBacklogKnown))
}

func TestANewTopicIsNoTrouble(t *testing.T) {
	_, status := measured(fixture.Partial(reading(10, 10), backlog.ErrNoData))
	require.NotNil(t, status.Signals.Coverage)
	require.True(t, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionBacklogKnown))
}

func TestUnknownNumbersAreNotShownAsZero(t *testing.T) {
	r := fixture.Partial(reading(0, 0), backlog.ErrForbidden)
	_, status := measured(r)
	require.Nil(t, status.Signals.ReadyMessages)
	require.Nil(t, status.Signals.PublishRate)
	require.Nil(t, status.Signals.Wait)
}

func TestTextsOfCoverageFitTheAPI(t *testing.T) {
	r := fixture.Partial(reading(0, 0), fmt.Errorf("%w: %s", backlog.ErrForbidden, strings.Repeat("x", 5000)))
	r.Coverage.Missing[0].Name = strings.Repeat("n", 5000)
	r.Coverage.Missing = append(r.Coverage.Missing, r.Coverage.Missing[0])
	_, status := measured(r)
	require.Len(t, status.Signals.Coverage.Missing, 1)
	require.Len(t, status.Signals.Coverage.Missing[0].Name, 512)
	require.LessOrEqual(t, len(status.Signals.Coverage.Missing[0].Message), 1024)
}

func TestTopicsThatAreNotPersistentAreNamed(t *testing.T) {
	const transient = "non-persistent://public/default/events"
	o, _ := measured(reading(10, 10))
	o.Target.Subscription = backlog.NewSubscription(backlog.Cluster{}, "f", "orders", transient)
	known := meta.FindStatusCondition(decideOn(o).Conditions, v1alpha1.ConditionBacklogKnown)
	require.Equal(t, metav1.ConditionTrue, known.Status)
	require.Contains(t, known.Message, transient)
}

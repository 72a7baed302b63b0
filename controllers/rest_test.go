// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// restingEnv has a policy with 3 replicas, an objective of an hour, and a topic that is idle for eleven minutes. It is
// polled as often as the store's changes demand.
func restingEnv(t *testing.T) (env *testEnv, atRest func() bool) {
	t.Helper()
	p := fixture.Policy()
	p.Spec.MinReplicas, p.Spec.LatencyObjective = new(int32(3)), metav1.Duration{Duration: time.Hour}
	env = newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
	feed, resting := env.store.Feed(false), false
	atRest = func() bool {
		for _, change := range feed.Changes() {
			resting = change.Pace == backlog.AtRest
		}
		return resting
	}
	env.firstDecision(0)
	for range 44 {
		env.after(testInterval)
		env.answer(0, 10_000)
		env.reconcile()
	}
	require.True(t, atRest())
	return env, atRest
}

func TestATopicAtRestIsPolledAsUsualFromTheFirstAnswerWithMessages(t *testing.T) {
	env, atRest := restingEnv(t)
	for range 20 {
		env.after(testInterval)
		env.reconcile()
		env.after(testInterval + 100*time.Millisecond)
		env.reconcile()
		env.answer(0, 10_000)
		env.reconcile()
		require.True(t, atRest(), "answers that are 30 s apart show rest too")
	}
	env.after(30 * time.Second)
	env.answer(15, 10_015)
	env.reconcile()
	require.False(t, atRest(), "at the reconcile of the answer")
}

func TestATopicAtRestLooksNoStalerThanOthers(t *testing.T) {
	env, _ := restingEnv(t)
	topic := backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}
	env.store.Fail(topic, backlog.ErrUnreachable)
	for _, later := range []time.Duration{30 * time.Second, testInterval} { // until the answer to the next request
		env.after(later)
		env.reconcile()
		status, message := env.condition(v1alpha1.ConditionBacklogKnown)
		require.Equal(t, "True/Measured", status, message)
	}
	env.store.Fail(topic, backlog.ErrUnreachable)
	env.after(5 * time.Second)
	env.reconcile()
	status, _ := env.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "False/Stale", status, "the second poll failed too")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestASharedSubscriptionIsReportedOnceAndScaledAllTheSame(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.reconcile()
	sample := fixture.Sample(env.now, 700, 10_000)
	consumers := sample.Partitions[0].Subscriptions[0].Consumers
	consumers[0].Component, consumers[1].Component = "public/default/resize", "public/default/twin"
	env.store.Record(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}, sample)
	for range 3 {
		env.reconcile()
	}
	c := meta.FindStatusCondition(env.policy().Status.Conditions, v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, v1alpha1.ReasonSubscriptionShared, c.Reason)
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	var warnings int
	for _, event := range env.events() {
		if strings.Contains(event, v1alpha1.ReasonSubscriptionShared) {
			require.Contains(t, event, "Warning")
			require.Contains(t, event, "public/default/twin")
			warnings++
		}
	}
	require.Equal(t, 1, warnings)
}

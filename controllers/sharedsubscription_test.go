// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestAnUnreadableSharerDoesNotFailThePolicy(t *testing.T) {
	for name, configMap := range map[string]string{
		"a name that cannot be":               "a/b",
		"a ConfigMap that cannot be read now": "away",
	} {
		t.Run(name, func(t *testing.T) {
			twin := fixture.Function()
			twin.SetNamespace("shop")
			fixture.Spec(twin)["pulsar"] = map[string]any{"pulsarConfig": configMap}
			env := newTestEnv(t, fixture.Function(), fixture.Policy(), twin, fixture.ConfigMap())
			env.configure = func(c *target.Config) { c.Objects = failing{Reader: env.client, name: configMap} }
			env.restart()
			env.firstDecision(700)
			status, _ := env.condition(v1alpha1.ConditionReady)
			require.NotContains(t, status, v1alpha1.ReasonTargetInvalid)
			require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
		})
	}
}

// failing is an API server that fails for one object.
type failing struct {
	client.Reader
	name string
}

func (f failing) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption,
) error {
	if key.Name == f.name {
		return errors.New("etcd is away")
	}
	return f.Reader.Get(ctx, key, object, options...)
}

func TestASharedSubscriptionIsReportedOnceAndScaledAllTheSame(t *testing.T) {
	twin := fixture.Workload(cluster.KindSink)
	twin.SetName("twin")
	fixture.Spec(twin)["subscriptionName"] = "public/default/resize"
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), twin, fixture.ConfigMap())
	env.reconcile()
	env.answer(700, 10_000)
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
			require.Contains(t, event, "Sink media/twin")
			warnings++
		}
	}
	require.Equal(t, 1, warnings)
}

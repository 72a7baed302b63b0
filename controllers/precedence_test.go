// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestAUsersPolicyTakesPrecedenceOverASets(t *testing.T) {
	ofSet := fixture.Policy()
	ofSet.Name, ofSet.UID = "media-resize", "uid-media-resize"
	fixture.SetOwner(ofSet, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicySet, "media")
	named := fixture.Policy()
	named.CreationTimestamp = metav1.NewTime(time.Now())
	env := newTestEnv(t, fixture.Function(), fixture.ConfigMap(), ofSet, named)
	last := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
	fixture.SetOwner(last, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, ofSet.Name)
	require.NoError(t, env.client.Create(t.Context(), last))
	for range 2 {
		env.reconcile()
		_, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
		require.Contains(t, message, "AutoscalingPolicy media-resize defers to this policy")
		require.Nil(t, env.autoscaler(), "two at once would stop both")
		require.NoError(t, client.IgnoreNotFound(env.client.Delete(t.Context(), ofSet)))
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestASecondFunctionOrdersItsReplicasWithThoseOfTheFirst: replicas of the first start slowly, so that the second has
// to order its own for messages that are not published yet.
func TestASecondFunctionOrdersItsReplicasWithThoseOfTheFirst(t *testing.T) {
	t.Parallel()
	const low, high, perReplica = 5, 80, 20
	second := addFunction(t, stage.FunctionConfig{Name: "piped-second", ServiceTime: time.Second / perReplica})
	first := addFunction(t, stage.FunctionConfig{
		Name: "piped-first", ServiceTime: time.Second / perReplica, StartDelay: 15 * time.Second,
		Edit: func(object *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(object.Object, second.Topic, "spec", "output", "topic"))
		},
	})
	addPolicy(t, newPolicy(first.Name))
	addPolicy(t, newPolicy(second.Name))
	rate := newDial(t, first, low)
	second.AwaitPolicy(t, "it to learn what the first publishes", func(p *v1alpha1.AutoscalingPolicy) bool {
		if p.Status.WorkingCheckpoint == "" {
			return false
		}
		state, err := policy.Resume(p.Status.WorkingCheckpoint, 1, time.Now())
		// As the load rises, a reading or two of both that are not of the same moment raise the error by up to a tenth, and
		// one above a quarter expects nothing.
		return err == nil && state.Upstream.Count >= 10 && state.Upstream.Error < 0.1
	})
	rate.turn(high)
	second.AwaitPolicy(t, "replicas for what the first will publish", func(p *v1alpha1.AutoscalingPolicy) bool {
		s := p.Status
		return s.Decision != nil && strings.Contains(s.Decision.Equation, "/s expected / ") && *s.DesiredReplicas > 1
	})
	second.AwaitReplicas(t, high/perReplica, 20)
	first.AwaitReplicas(t, high/perReplica, 20)
	requireClean(t, first)
}

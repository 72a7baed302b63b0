// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestScalingSaysThatADownstreamIsTheLimit(t *testing.T) {
	t.Parallel()
	const name, limit = "limited", 120
	f := addFunction(t,
		stage.FunctionConfig{
			Name: name, ServiceTime: 20 * time.Millisecond, StartDelay: 3 * time.Second,
			DownstreamRate: limit,
		})
	p := newPolicy(name)
	p.Spec.MaxReplicas = 50 // a busy machine needs more polls to tell, and replicas are added meanwhile
	addPolicy(t, p)
	publish(t, f, load.Step(20, 250, 15*time.Second, time.Hour))
	f.AwaitPolicy(t, "more replicas do no more", func(p *v1alpha1.AutoscalingPolicy) bool {
		d := p.Status.Decision
		return d != nil && d.Hold != nil && d.Hold.Reason == policy.HoldIneffective
	})
	f.AwaitConditions(t, "Ready=True/Scaling", "ObjectiveMet=False/ExternalLimit", "ScalingLimited=True/ExternalLimit")
	awaitEvent(t, name, v1alpha1.ReasonExternalLimit, "more replicas would process no more messages")
	awaitEvent(t, name, v1alpha1.ReasonExternalLimit, "messages wait longer than the latency objective")
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	tell(t, f, p)
	require.Contains(t, p.Status.Decision.Hold.Message, "look at what the Function waits for")
	_, most := raisesSince(f, time.Time{})
	require.Less(t, most, int(p.Spec.MaxReplicas), "%+v", scene.Mesh.Timeline(stage.Namespace, name))
}

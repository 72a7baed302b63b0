// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

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
	// The events stay; the conditions may change once more replicas are tried.
	awaitEvent(t, name, v1alpha1.ReasonExternalLimit, "more replicas would process no more messages")
	awaitEvent(t, name, v1alpha1.ReasonExternalLimit, "messages wait longer than the latency objective")
	f.AwaitPolicy(t, "more replicas do no more", func(p *v1alpha1.AutoscalingPolicy) bool {
		d := p.Status.Decision
		return d != nil && d.Hold != nil && d.Hold.Reason == policy.HoldIneffective &&
			strings.Contains(d.Hold.Message, "look at what the Function waits for")
	})
}

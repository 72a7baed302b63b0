// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"

// OwnReplicas is how many replicas of the target may consume: its pods that run, where they are known, so that those of
// a rolling update and those that end count; else as many replicas as it has or reports. Nil for a target that says
// itself what it consumes: who shares its subscription is known by other means.
func (o Observed) OwnReplicas(pods *policy.Pods) *int32 {
	switch {
	case o.Policy.Spec.Subscription == nil || o.Target == nil || o.Target.Replicas == nil:
		return nil
	case pods != nil && pods.Running != nil:
		return pods.Running
	case o.Target.Reported != nil:
		return new(max(*o.Target.Replicas, *o.Target.Reported))
	default:
		return o.Target.Replicas
	}
}

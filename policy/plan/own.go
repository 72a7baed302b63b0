// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"

// OwnReplicas is how many replicas of the target may consume: its running pods, which include those of a rollout and
// terminating ones, or else its replicas. Nil for a target without spec.subscription: its other consumers are known by
// their names.
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

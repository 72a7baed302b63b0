// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "math"

// MissingConsumers is the number of consumers that the running replicas of the target lack, by consumersPerReplica; 0
// if that is unknown, or while pods start or a rollout replaces them. What a replica processes cannot be learned then:
// the messages of several replicas would count as those of one.
func (in Input) MissingConsumers() int32 {
	consumers, err := in.Reading.Consumers.Value()
	if in.Spec.Subscription == nil || in.Unknown != nil || err != nil || !in.Reading.Coverage.Complete() ||
		in.Pods == nil || in.Pods.Running == nil || in.Pods.Unready > 0 || in.Pods.Updating {
		return 0
	}
	running := min(*in.Pods.Running, in.CurrentReplicas) // terminating pods run for a while without a consumer
	return int32(min(max(0, float64(running)*float64(in.perReplica())-consumers), math.MaxInt32))
}

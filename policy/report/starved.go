// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// undispatchedShare of the backlog is what other replicas may still receive while some are starved.
	undispatchedShare = 0.1
	// QueuedSeconds is the work that the receive queues of a replica, one for each partition, should hold.
	QueuedSeconds = 2
)

// starved describes replicas without messages while the others hold more than they process within the latency
// objective; empty for none. Pulsar sends a consumer up to receiverQueueSize messages of each partition, and others
// cannot get these.
func starved(o outcome) string {
	r := o.Reading
	consumers, err := r.Consumers.Value()
	if err != nil || r.Type != backlog.Shared { // with Key_Shared, keys decide who gets a message
		return ""
	}
	holding, err := r.Holding.Value()
	if err != nil || holding < 1 || consumers-holding < 1 {
		return ""
	}
	ready, err := r.Ready.Value()
	undispatched, unknown := r.Undispatched.Value()
	wait, notLearned := o.decision.Wait.Value()
	if err != nil || unknown != nil || notLearned != nil || undispatched > undispatchedShare*ready ||
		wait*consumers/holding <= policy.LatencyObjective(o.Policy.Spec).Seconds() {
		return ""
	}
	queue := max(1, math.Ceil(QueuedSeconds*ready/(wait*consumers)/float64(max(1, r.Partitions))))
	return fmt.Sprintf("%.0f of %.0f replicas have no messages, since %.0f hold %.0f in their receive queues: "+
		"%s to %.0f, which is %d s of a replica's work", consumers-holding, consumers, holding, ready-undispatched,
		QueueField(o.Policy.Spec), queue, QueuedSeconds)
}

// QueueField is how to set the size of the receive queue of a policy's target.
func QueueField(spec v1alpha1.AutoscalingPolicySpec) string {
	switch {
	case spec.Subscription != nil:
		return "set receiverQueueSize of the consumers"
	case spec.PulsarFunctionRef.Name != "" || spec.ScaleTargetRef.Kind == plan.KindStatefulSet:
		return "set inputSpecs.<topic>.receiverQueueSize of the function"
	default:
		return "set spec.input.sourceSpecs.<topic>.receiverQueueSize"
	}
}

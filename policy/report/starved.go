// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

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
	// longestWork does not overflow, in seconds.
	longestWork = 1e9
)

// queued is a backlog that is nearly all in receive queues, and more work than the latency objective allows. Pulsar
// sends a consumer up to receiverQueueSize messages of each partition. Others, also added ones, cannot get them:
// they are late whatever is done.
type queued struct {
	consumers, holding, messages float64
	// work is how long the replicas that hold messages take for them.
	work time.Duration
	// fix is how to set a queue that replicas process in time.
	fix string
}

// lateInQueues is nil if no message is late because of a queue, or if that is unknown.
func lateInQueues(o outcome) *queued {
	r := o.Reading
	consumers, err := r.Consumers.Value()
	if err != nil || r.Type != backlog.Shared { // with Key_Shared, keys decide who gets a message
		return nil
	}
	holding, err := r.Holding.Value()
	if err != nil || holding < 1 {
		return nil
	}
	ready, err := r.Ready.Value()
	undispatched, unknown := r.Undispatched.Value()
	wait, notLearned := o.decision.Wait.Value()
	if err != nil || unknown != nil || notLearned != nil || undispatched > undispatchedShare*ready {
		return nil
	}
	work := time.Duration(min(wait*consumers/holding, longestWork) * float64(time.Second))
	if work <= policy.LatencyObjective(o.Policy.Spec) {
		return nil
	}
	size := max(1, math.Ceil(QueuedSeconds*ready/(wait*consumers)/float64(max(1, r.Partitions))))
	return &queued{
		consumers: consumers, holding: holding, messages: ready - undispatched, work: work,
		fix: fmt.Sprintf("%s to %.0f, which is %d s of a replica's work", QueueField(o.Policy.Spec), size, QueuedSeconds),
	}
}

// starve reports whether replicas have no messages.
func (q *queued) starve() bool { return q != nil && q.consumers-q.holding >= 1 }

func (q *queued) starvedMessage() string {
	return fmt.Sprintf("%.0f of %.0f replicas have no messages, since %.0f hold %.0f in their receive queues: %s",
		q.consumers-q.holding, q.consumers, q.holding, q.messages, q.fix)
}

// drained is the message while replicas drain the backlog.
func (q *queued) drained() string {
	const drain = "replicas drain the backlog"
	if q == nil {
		return drain
	}
	return fmt.Sprintf("%s: their receive queues hold %.0f messages, %s of work that added replicas cannot take. For the "+
		"next backlog, %s", drain, q.messages, duration.HumanDuration(q.work), q.fix)
}

// QueueField is how to set the size of the receive queue of a policy's target.
func QueueField(spec v1alpha1.AutoscalingPolicySpec) string {
	switch {
	case spec.Subscription != nil:
		return "set receiverQueueSize of the consumers"
	case spec.PulsarFunctionRef.Name != "" || spec.ScaleTargetRef.Kind == plan.KindStatefulSet:
		return "set inputSpecs.<topic>.receiverQueueSize of the function"
	case spec.ScaleTargetRef.Kind == plan.KindFunctionMesh:
		return "set input.sourceSpecs.<topic>.receiverQueueSize of the entry"
	default:
		return "set spec.input.sourceSpecs.<topic>.receiverQueueSize"
	}
}

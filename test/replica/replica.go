// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"time"
)

const (
	defaultQueue = 1000 // the receiver queue of Pulsar's Java client
	// defaultRedeliver is how long Pulsar's clients wait before they redeliver a failed message.
	defaultRedeliver = time.Minute
	// defaultAsync is Pulsar's limit on pending futures of an asynchronous function.
	defaultAsync = 1000
	clusterName  = "standalone"
)

// Subscription types of functions.
const (
	Shared    = "Shared"
	Failover  = "Failover"
	KeyShared = "Key_Shared"
)

// Instance configures one replica. Tenant, Namespace, Name, ServiceURL, and Topics or TopicPattern are required.
type Instance struct {
	// Tenant, Namespace and Name identify the function.
	Tenant, Namespace, Name string
	// ID is the instance id, on Kubernetes the ordinal of the pod.
	ID int
	// Topics are the full names of existing input topics.
	Topics []string
	// TopicPattern selects topics by an expression, such as persistent://public/default/in-.*, in place of Topics. New
	// topics are discovered within a minute, as by Pulsar's instances. Light only.
	TopicPattern string
	// Subscription is the name of the subscription; empty is Pulsar's default, tenant/namespace/name.
	Subscription string
	// SubscriptionType is Shared, Failover or Key_Shared; empty is Shared.
	SubscriptionType string
	// Output is a topic that gets each processed message with its key and properties; empty is none. An asynchronous
	// function has no output.
	Output string
	// ServiceURL is the broker, e.g. "pulsar://127.0.0.1:6650".
	ServiceURL string
	// Token authenticates the replica; empty is none.
	Token string
	// ServiceTime is the cost of a message. Messages are processed one after another, except with AsyncRequests.
	ServiceTime time.Duration
	// AsyncRequests makes the function asynchronous, with that many messages in process at a time; 0 is a synchronous
	// function. Java only.
	AsyncRequests int
	// FailEvery makes every n-th call fail after its service time; 0 is never.
	FailEvery int
	// RedeliverAfter is the delay before a failed message is redelivered; 0 is 1 min.
	RedeliverAfter time.Duration
	// StartDelay is how long a pod waits before it starts the replica, as for an image pull. Runners start at once.
	StartDelay time.Duration
	// Plain omits the function metadata of the consumer. Light only.
	Plain bool
	// ReceiverQueueSize is the number of prefetched messages; 0 is 1000.
	ReceiverQueueSize int
}

// FQFN is the full name of the function, tenant/namespace/name.
func (in Instance) FQFN() string { return in.Tenant + "/" + in.Namespace + "/" + in.Name }

func (in Instance) withDefaults() Instance {
	if in.Subscription == "" {
		in.Subscription = in.FQFN()
	}
	if in.SubscriptionType == "" {
		in.SubscriptionType = Shared
	}
	if in.ReceiverQueueSize == 0 {
		in.ReceiverQueueSize = defaultQueue
	}
	if in.RedeliverAfter == 0 {
		in.RedeliverAfter = defaultRedeliver
	}
	return in
}

// Completion is one message that was processed without a failure. A redelivered message completes again.
type Completion struct {
	// Published and Done are when the producer published the message and when its processing ended, by the clock of this
	// machine. Published, and Done of a Java replica, are in whole milliseconds.
	Published, Done time.Time
	// Took is the duration of the call by the function's clock; 0 for an asynchronous function. On a busy machine it
	// exceeds ServiceTime.
	Took time.Duration
	// Instance is the ID of the replica.
	Instance int
	// Sequence is the number that load.Publisher gave to the message; 0 for messages of other producers.
	Sequence uint64
}

// Replica is a started replica.
//
//nolint:interfacebloat // two implementations in this package, and what tests do to both
type Replica interface {
	// Ready is closed when the replica consumes.
	Ready() <-chan struct{}
	// Done is closed when the replica has ended.
	Done() <-chan struct{}
	// Stop lets the replica finish its message and end, and kills it when ctx ends first. A second call is harmless.
	Stop(ctx context.Context) error
	// Kill ends the replica as a crash does: its unacknowledged messages return to the subscription.
	Kill() error
	// MetricsURL serves pulsar_function_* once the replica is Ready, e.g. "http://127.0.0.1:19094/metrics".
	MetricsURL() string
}

// Runner starts replicas. Start returns at once; the replica lives until Stop, Kill or the end of ctx.
type Runner interface {
	Start(ctx context.Context, in Instance) (Replica, error)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	defaultQueue = 1000 // the receiver queue of Pulsar's Java client
	// defaultRedeliver is how long Pulsar's clients wait before a message whose function failed comes again.
	defaultRedeliver = time.Minute
	// defaultAsync is how many futures of an asynchronous function Pulsar lets be open.
	defaultAsync = 1000
	cluster      = "standalone"
)

// Subscription types that a function may have.
const (
	Shared    = "Shared"
	Failover  = "Failover"
	KeyShared = "Key_Shared"
)

// Instance says what one replica consumes and how it behaves. Tenant, Namespace, Name, ServiceURL, and Topics or
// TopicPattern are required.
type Instance struct {
	// Tenant, Namespace and Name are the function.
	Tenant, Namespace, Name string
	// ID is the instance id, which on Kubernetes is the ordinal of the pod.
	ID int
	// Topics are the inputs, as full names; they exist already.
	Topics []string
	// TopicPattern is an expression of topics instead of Topics, such as persistent://public/default/in-.*; what comes
	// later is found within a minute, as with Pulsar's instances. Light only.
	TopicPattern string
	// Subscription is its name; empty is tenant/namespace/name, as for every function that names none.
	Subscription string
	// SubscriptionType is Shared, Failover or Key_Shared; empty is Shared.
	SubscriptionType string
	// Output is a topic that gets each processed message, with its key and its properties; empty is none. Not of an
	// asynchronous function.
	Output string
	// ServiceURL is the broker, e.g. "pulsar://127.0.0.1:6650".
	ServiceURL string
	// Token authenticates, if not empty.
	Token string
	// ServiceTime is what one message costs; messages are processed one after another unless AsyncRequests says otherwise.
	ServiceTime time.Duration
	// AsyncRequests makes the function an asynchronous one that works on so many messages side by side; 0 is a synchronous
	// function. Java only.
	AsyncRequests int
	// FailEvery makes every n-th call fail after its service time; 0 is never.
	FailEvery int
	// RedeliverAfter is when a failed message comes again; 0 is 1 min.
	RedeliverAfter time.Duration
	// StartDelay passes before the replica begins to start, as the pull of an image does.
	StartDelay time.Duration
	// Plain makes the consumer one of no function: it does not say which instance of what it is. Light only.
	Plain bool
	// ReceiverQueueSize is the number of messages fetched ahead; 0 is 1000.
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

func (in Instance) validate() error {
	switch {
	case in.Tenant == "" || in.Namespace == "" || in.Name == "":
		return fmt.Errorf("replica.Instance is of the function %q: Tenant, Namespace and Name must not be empty", in.FQFN())
	case in.ID < 0:
		return fmt.Errorf("replica.Instance.ID is %d: it must be 0 or more", in.ID)
	case !slices.Contains([]string{Shared, Failover, KeyShared}, in.SubscriptionType):
		return fmt.Errorf("replica.Instance.SubscriptionType is %q: it must be Shared, Failover or Key_Shared",
			in.SubscriptionType)
	case in.ServiceURL == "":
		return errors.New("replica.Instance.ServiceURL is empty: it must be the broker's, e.g. pulsar://127.0.0.1:6650")
	case in.ServiceTime < 0 || in.StartDelay < 0 || in.RedeliverAfter < 0:
		return fmt.Errorf("replica.Instance has ServiceTime %s, StartDelay %s, RedeliverAfter %s: none may be negative",
			in.ServiceTime, in.StartDelay, in.RedeliverAfter)
	case in.FailEvery < 0 || in.ReceiverQueueSize < 0 || in.AsyncRequests < 0:
		return fmt.Errorf("replica.Instance has FailEvery %d, ReceiverQueueSize %d, AsyncRequests %d: none may be negative",
			in.FailEvery, in.ReceiverQueueSize, in.AsyncRequests)
	}
	return in.validateInputs()
}

func (in Instance) validateInputs() error {
	switch {
	case in.TopicPattern != "" && len(in.Topics) > 0:
		return fmt.Errorf("replica.Instance has Topics %q and TopicPattern %q: only one of them may be set", in.Topics,
			in.TopicPattern)
	case in.TopicPattern == "" && (len(in.Topics) == 0 || slices.Contains(in.Topics, "")):
		return fmt.Errorf("replica.Instance.Topics is %q: it must name at least one topic, and none may be empty", in.Topics)
	}
	return nil
}

// Completion is one message that was processed without a failure. A message that comes again completes again.
type Completion struct {
	// Published and Done are when the producer published the message and when its processing ended, by this machine's
	// clock; Published has whole milliseconds, Done of a Java replica too.
	Published, Done time.Time
	// Took is how long the call took by the function's own clock; 0 for an asynchronous function. On a busy machine that
	// is more than the ServiceTime.
	Took time.Duration
	// Instance is the ID of the replica.
	Instance int
	// Sequence is the number that load.Publisher gave to the message; 0 for a message of somebody else.
	Sequence uint64
}

// Replica is a started replica.
//
//nolint:interfacebloat // two implementations in this package, and what tests do to both
type Replica interface {
	// Ready is closed when the replica consumes.
	Ready() <-chan struct{}
	// Done is closed when the replica has ended, for whatever reason.
	Done() <-chan struct{}
	// Stop lets the replica finish its message and end, by force when ctx is done. It may be called again.
	Stop(ctx context.Context) error
	// Kill ends the replica as a crash does; what it had not acknowledged goes back to its subscription.
	Kill() error
	// MetricsURL is where the replica serves pulsar_function_* from Ready on, e.g. "http://127.0.0.1:19094/metrics".
	MetricsURL() string
	// SetServiceTime changes the cost of the messages after the one in process.
	SetServiceTime(cost time.Duration)
}

// Runner starts replicas. Start returns at once; the replica lives until Stop, Kill or the end of ctx.
type Runner interface {
	Start(ctx context.Context, in Instance) (Replica, error)
}

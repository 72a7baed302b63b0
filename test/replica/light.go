// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"fmt"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/time/rate"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// Light runs replicas that are Pulsar consumers in this process. Replicas of one broker share a connection.
type Light struct {
	completed  func(Completion)
	downstream *rate.Limiter // nil without one

	mu      sync.Mutex // guards clients
	clients map[connection]pulsar.Client
	running sync.WaitGroup
}

type connection struct{ serviceURL, token string }

var _ Runner = (*Light)(nil)

// NewLight returns a runner that calls completed for each processed message, from one goroutine per replica; nil for no
// calls. Close it after its replicas.
func NewLight(completed func(Completion)) *Light {
	if completed == nil {
		completed = func(Completion) {}
	}
	return &Light{completed: completed, clients: map[connection]pulsar.Client{}}
}

// NewLightBehind is NewLight with replicas that call the same downstream for each message, such as a database, within
// the service time. All replicas together get at most as many responses per second as it has tokens.
func NewLightBehind(downstream *rate.Limiter, completed func(Completion)) *Light {
	l := NewLight(completed)
	l.downstream = downstream
	return l
}

// Start starts a consumer; the Replica is a *Consumer. Errors are about in or about a port for the
// metrics. The consumer retries while it cannot subscribe, see Consumer.Err.
func (l *Light) Start(ctx context.Context, in Instance) (Replica, error) {
	in = in.withDefaults()
	wanted, err := options(in)
	if err != nil {
		return nil, err
	}
	client, err := l.client(in)
	if err != nil {
		return nil, err
	}
	m := newMetrics(in)
	s, err := serve(ctx, m)
	if err != nil {
		return nil, err
	}
	ctx, kill := context.WithCancel(ctx)
	stopping, stop := context.WithCancel(ctx)
	c := &Consumer{
		in: in, wanted: wanted, client: client, completed: l.completed, downstream: l.downstream, metrics: m, server: s,
		ready: make(chan struct{}), done: make(chan struct{}), kill: kill, stop: stop,
	}
	l.running.Go(func() { c.run(ctx, stopping) })
	return c, nil
}

// Close waits until the replicas have ended, and disconnects. Stop the replicas first.
func (l *Light) Close() {
	l.running.Wait()
	l.mu.Lock()
	clients := l.clients
	l.clients = map[connection]pulsar.Client{}
	l.mu.Unlock()
	for _, client := range clients {
		client.Close()
	}
}

// client returns the shared client of a broker. It connects on first use.
func (l *Light) client(in Instance) (pulsar.Client, error) {
	key := connection{in.ServiceURL, in.Token}
	l.mu.Lock()
	defer l.mu.Unlock()
	if client, ok := l.clients[key]; ok {
		return client, nil
	}
	client, err := broker.Connect(in.ServiceURL, in.Token)
	if err != nil {
		return nil, err
	}
	l.clients[key] = client
	return client, nil
}

// options are the consumer's, with the name, type, metadata and queue of a Java function instance.
func options(in Instance) (wanted pulsar.ConsumerOptions, err error) {
	kind, known := map[string]pulsar.SubscriptionType{
		Shared: pulsar.Shared, Failover: pulsar.Failover, KeyShared: pulsar.KeyShared,
	}[in.SubscriptionType]
	switch {
	case !known:
		return wanted, fmt.Errorf("replica.Instance.SubscriptionType is %q: it must be Shared, Failover or Key_Shared",
			in.SubscriptionType)
	case in.AsyncRequests > 0:
		return wanted, fmt.Errorf("replica.Instance.AsyncRequests is %d: a light replica processes one message after another",
			in.AsyncRequests)
	case (in.TopicPattern == "") == (len(in.Topics) == 0):
		return wanted, fmt.Errorf("replica.Instance has Topics %q and TopicPattern %q: it needs one of them", in.Topics,
			in.TopicPattern)
	}
	wanted = pulsar.ConsumerOptions{
		SubscriptionName:            in.Subscription,
		Type:                        kind,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		ReceiverQueueSize:           in.ReceiverQueueSize,
		NackRedeliveryDelay:         in.RedeliverAfter,
		MessageChannel:              make(chan pulsar.ConsumerMessage), // no second queue
	}
	if !in.Plain {
		wanted.Properties = map[string]string{
			"application": "pulsar-function", "id": in.FQFN(), "instance_id": fmt.Sprint(in.ID),
		}
	}
	switch {
	case in.TopicPattern != "":
		wanted.TopicsPattern = in.TopicPattern
	case len(in.Topics) == 1:
		wanted.Topic = in.Topics[0]
	default:
		wanted.Topics = in.Topics
	}
	return wanted, nil
}

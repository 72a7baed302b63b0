// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// interest maps topics to policies: it has the store track the topics, and enqueues the policies when there is new
// data.
type interest struct {
	store *backlog.Store

	// mu guards everything below.
	mu sync.Mutex
	// inputs of each policy are its topics, its patterns by their text, and the namespaces of these, by their names,
	// which no topic has.
	inputs map[types.NamespacedName][]backlog.Topic
	users  map[backlog.Topic][]types.NamespacedName
	// priorities other than routinePriority in the queue.
	priorities map[types.NamespacedName]int
	// unreported are the policies that are in the queue for their reports alone.
	unreported map[types.NamespacedName]struct{}
	queue      priorityqueue.PriorityQueue[reconcile.Request]
}

func newInterest(store *backlog.Store) *interest {
	return &interest{
		store:      store,
		inputs:     map[types.NamespacedName][]backlog.Topic{},
		users:      map[backlog.Topic][]types.NamespacedName{},
		priorities: map[types.NamespacedName]int{},
		unreported: map[types.NamespacedName]struct{}{},
	}
}

// follow makes the store track the policy's subscription; nil for none.
func (i *interest) follow(key types.NamespacedName, subscription *backlog.Subscription) {
	var inputs []backlog.Topic
	if subscription == nil {
		i.store.Untrack(owner(key))
	} else {
		i.store.Track(owner(key), *subscription)
		for _, name := range slices.Concat(subscription.Topics, subscription.Patterns) {
			inputs = append(inputs, backlog.Topic{Cluster: subscription.Cluster, Name: name})
		}
		for _, pattern := range subscription.Patterns {
			inputs = append(inputs, backlog.Topic(backlog.NamespaceOf(subscription.Cluster, pattern)))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.relist(key, inputs)
	delete(i.priorities, key)
	if subscription != nil && subscription.Pace.Wakes() {
		i.priorities[key] = wakePriority
	}
}

// relist moves the policy from the users of its old inputs to those of the new ones. mu is held.
func (i *interest) relist(key types.NamespacedName, to []backlog.Topic) {
	if slices.Equal(i.inputs[key], to) {
		return // as at most reconciles
	}
	for _, input := range i.inputs[key] {
		i.users[input] = slices.DeleteFunc(i.users[input], func(user types.NamespacedName) bool { return user == key })
		if len(i.users[input]) == 0 {
			delete(i.users, input)
		}
	}
	for _, input := range to {
		i.users[input] = append(i.users[input], key)
	}
	if i.inputs[key] = to; len(to) == 0 {
		delete(i.inputs, key)
	}
}

// start takes over the queue, to which news of topics is added from now on.
func (i *interest) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	ordered, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return fmt.Errorf("the queue is a %T, without priorities", queue)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = ordered
	return nil
}

// patternNewsDelay batches changes of the topics of a pattern: there may be thousands, each with new data every few
// seconds, and a reconcile reads them all.
const patternNewsDelay = time.Second

const (
	// wakePriority takes targets at zero before everything else in the queue.
	wakePriority = 1
	// routinePriority takes policies with news of their topics, or at their turn, after all that was created or changed,
	// and after those that exist at the start. Where statuses are written slowly, these would not be reconciled.
	routinePriority = handler.LowPriority - 1
	// reportPriority takes policies after all decisions, if only the status has to be written.
	reportPriority = routinePriority - 1
)

// begin notes that the policy is reconciled, so that it is in the queue no more.
func (i *interest) begin(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.unreported, key)
}

// addReport enqueues a policy for its report alone.
func (i *interest) addReport(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unreported[key] = struct{}{}
	i.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(reportPriority)}, reconcile.Request{NamespacedName: key})
}

// decisionsWait reports whether policies wait in the queue for more than their reports.
func (i *interest) decisionsWait() bool {
	i.mu.Lock()
	queue, reports := i.queue, len(i.unreported)
	i.mu.Unlock()
	return queue != nil && queue.Len() > reports
}

// notify enqueues the policies with the input, which has new data: a topic, or a pattern by its text. It never blocks:
// the queue is unbounded and holds each policy once. On a process that is not the leader it does nothing.
func (i *interest) notify(input backlog.Topic) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queue == nil {
		return
	}
	for _, key := range i.users[input] {
		i.add(key, 0)
	}
	for _, key := range i.users[backlog.Topic(backlog.NamespaceOf(input.Cluster, input.Name))] {
		i.add(key, patternNewsDelay)
	}
}

// add enqueues a policy, without blocking. mu is held.
func (i *interest) add(key types.NamespacedName, after time.Duration) {
	delete(i.unreported, key)
	priority, set := i.priorities[key]
	if !set {
		priority = routinePriority
	}
	i.queue.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, reconcile.Request{NamespacedName: key})
}

// owner is the owner of a policy's topics in the store.
func owner(key types.NamespacedName) string {
	return backlog.Owner(key.Namespace, "policy/"+key.Name)
}

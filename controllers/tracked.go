// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// policyMemory is what one reconcile of a policy hands to the next. Reconciles of a policy never overlap, so it needs
// no lock of its own.
type policyMemory struct {
	uid types.UID
	// resume is the state of the last decision; nil before the first in this process.
	resume *policy.State
	// paused says that nothing was decided since resume: the mode was Off, or there was no target.
	paused bool
	// forgot says that the last decision forgot what was learned of another subscription, until that has been told.
	forgot bool
	// unread is why the status's state was not resumed, until it has been logged.
	unread error
	// refused is the last refusal of an apply; nil when the last one was good.
	refused *refusal
	// handedOverAt is when our HorizontalPodAutoscaler was deleted last.
	handedOverAt time.Time
	// toleranceSince is since when the autoscaler has lacked the tolerance, or when it was last applied for that.
	toleranceSince time.Time
	// followed is the last subscription of a target that was there, and followedAt when that was.
	followed   *backlog.Subscription
	followedAt time.Time
	// putAway is what was taken over; gaveBackAt when it was given back, while the policy stays; farewells are the tries
	// to give it back since the policy was deleted, and leavesSince when they ended.
	putAway     putAway
	gaveBackAt  time.Time
	farewells   int
	leavesSince time.Time
	// target is the UID of what the last decision on a reading was about.
	target string
	// inputs that the policy is listed under: topics, and patterns by their text; and the namespaces of those.
	inputs     []backlog.Topic
	namespaces []backlog.Namespace
}

// refusal is an apply that the API server turned down and that nothing but a change elsewhere can mend.
type refusal struct {
	violation plan.Violation
	at        time.Time
	// generation of the policy, and what it met: see func met.
	generation int64
	met        string
}

// retryRefusedEvery is how often a refused apply is tried again when nothing that we see changed: permissions and
// admission rules change out of our sight.
const retryRefusedEvery = time.Minute

// stands says that trying again would be refused again.
func (r *refusal) stands(p *v1alpha1.AutoscalingPolicy, met string, now time.Time) bool {
	return r != nil && r.generation == p.Generation && r.met == met && now.Sub(r.at) < retryRefusedEvery
}

// met is what an apply meets: the autoscaler of one actuator or the other, by what does not change with the status that
// is written of it at every sync.
func met(outcome plan.Outcome) string {
	identity := string(outcome.Actuator.Type) + " "
	switch hpa, object := outcome.Observed.Autoscaler, outcome.Observed.ScaledObject; {
	case outcome.Actuator.Type == v1alpha1.ActuatorKEDA && object != nil:
		identity += string(object.UID)
	case outcome.Actuator.Type == v1alpha1.ActuatorHPA && hpa != nil:
		identity += string(hpa.UID)
	}
	return identity
}

// retryToleranceEvery is how often an autoscaler without the tolerance is applied anew: a server that was upgraded to
// 1.35 keeps it then. At 10k policies on an older one that is 3 applies a second, which change nothing.
const retryToleranceEvery = time.Hour

// toleranceDue says that it is time to try.
func (m *policyMemory) toleranceDue(live *autoscalingv2.HorizontalPodAutoscaler, now time.Time) bool {
	switch {
	case live == nil || plan.ToleranceHonoured(live):
		m.toleranceSince = time.Time{}
	case m.toleranceSince.IsZero():
		m.toleranceSince = now
	case now.Sub(m.toleranceSince) >= retryToleranceEvery:
		m.toleranceSince = now
		return true
	}
	return false
}

// state is where the last decision left off, in this process or in the one before it.
func (m *policyMemory) state(status v1alpha1.AutoscalingPolicyStatus, currentReplicas int32,
	now time.Time,
) policy.State {
	paused := m.paused
	m.paused = false
	switch {
	case m.resume != nil && paused:
		return m.resume.Continue(currentReplicas, now)
	case m.resume != nil:
		return *m.resume
	}
	var state policy.State
	state, m.unread = policy.Resume(status, currentReplicas, now)
	return state
}

// trackedPolicies keeps the memory of every policy, the store informed of what they need, and the queue informed of
// news about it.
type trackedPolicies struct {
	store *backlog.Store

	// mu guards everything below.
	mu       sync.Mutex
	memories map[types.NamespacedName]*policyMemory
	users    map[backlog.Topic]map[types.NamespacedName]struct{}
	// matchers are the policies with patterns that may match topics of the namespace.
	matchers map[backlog.Namespace]map[types.NamespacedName]struct{}
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newTrackedPolicies(store *backlog.Store) *trackedPolicies {
	return &trackedPolicies{
		store: store, memories: map[types.NamespacedName]*policyMemory{},
		users:    map[backlog.Topic]map[types.NamespacedName]struct{}{},
		matchers: map[backlog.Namespace]map[types.NamespacedName]struct{}{},
	}
}

// follow makes the store track the policy's subscription, or stop when it is nil, and returns the policy's memory. A
// policy that was deleted and recreated under its name starts afresh.
func (t *trackedPolicies) follow(p *v1alpha1.AutoscalingPolicy, subscription *backlog.Subscription) *policyMemory {
	key := client.ObjectKeyFromObject(p)
	var inputs []backlog.Topic
	var namespaces []backlog.Namespace
	if subscription == nil {
		t.store.Untrack(owner(key))
	} else {
		t.store.Track(owner(key), *subscription)
		for _, name := range slices.Concat(subscription.Topics, subscription.Patterns) {
			inputs = append(inputs, backlog.Topic{Cluster: subscription.Cluster, Name: name})
		}
		for _, pattern := range subscription.Patterns {
			namespaces = append(namespaces, backlog.NamespaceOf(subscription.Cluster, pattern))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	memory := t.memories[key]
	if memory == nil || memory.uid != p.UID {
		fresh := &policyMemory{uid: p.UID}
		if memory != nil {
			fresh.inputs, fresh.namespaces = memory.inputs, memory.namespaces
		}
		memory = fresh
		t.memories[key] = memory
	}
	t.list(key, memory, inputs, namespaces)
	return memory
}

// forget drops all that is kept for a policy.
func (t *trackedPolicies) forget(key types.NamespacedName) {
	t.store.Untrack(owner(key))
	t.mu.Lock()
	defer t.mu.Unlock()
	if memory := t.memories[key]; memory != nil {
		t.list(key, memory, nil, nil)
		delete(t.memories, key)
	}
}

// list makes the policy a user of these inputs and namespaces and of no others. mu is held.
func (t *trackedPolicies) list(key types.NamespacedName, memory *policyMemory, inputs []backlog.Topic,
	namespaces []backlog.Namespace,
) {
	relist(t.users, key, memory.inputs, inputs)
	relist(t.matchers, key, memory.namespaces, namespaces)
	memory.inputs, memory.namespaces = inputs, namespaces
}

// relist takes the policy out of the lists it was in and puts it into others.
func relist[K comparable](lists map[K]map[types.NamespacedName]struct{}, key types.NamespacedName, from, to []K) {
	for _, name := range from {
		delete(lists[name], key)
		if len(lists[name]) == 0 {
			delete(lists, name)
		}
	}
	for _, name := range to {
		if lists[name] == nil {
			lists[name] = map[types.NamespacedName]struct{}{}
		}
		lists[name][key] = struct{}{}
	}
}

// deliverTo sets the queue that news go to.
func (t *trackedPolicies) deliverTo(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = queue
}

// gatherFor is how long news of topics that a pattern may match are gathered: there may be thousands, each with news
// every few seconds, and a reconcile reads them all.
const gatherFor = time.Second

// poked queues the policies that use the input: a topic, or a pattern by its text.
func (t *trackedPolicies) poked(input backlog.Topic) {
	t.mu.Lock()
	queue := t.queue
	users := slices.Collect(maps.Keys(t.users[input]))
	var matchers []types.NamespacedName
	if len(t.matchers) > 0 {
		matchers = slices.Collect(maps.Keys(t.matchers[backlog.NamespaceOf(input.Cluster, input.Name)]))
	}
	t.mu.Unlock()
	if queue == nil {
		return
	}
	for _, key := range users {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
	for _, key := range matchers {
		queue.AddAfter(reconcile.Request{NamespacedName: key}, gatherFor)
	}
}

// owner is the name under which a policy's interest stands in the store.
func owner(key types.NamespacedName) string {
	return "policy/" + key.String()
}

// Poked tells the policies that use the topic that there is news of it. It never blocks: the queue is unbounded and
// holds each policy once. On a process that is not the leader it does nothing.
func (r *PolicyReconciler) Poked(topic backlog.Topic) {
	r.tracked.poked(topic)
}

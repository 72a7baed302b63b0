// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// pollEvery is the adapter's default poll interval in seconds, and pollPhase its offset: a sync then finds data 2 or 7
// s old, the average of two independent periods; in phase, the results would be too good.
const pollEvery, pollPhase = 10, 3

// capacity is the product: the Store fed as the poller feeds it, policy.Decide, and an HPA that sets the desired
// replicas at its next sync.
type capacity struct {
	store        *backlog.Store
	subscription backlog.Subscription
	spec         v1alpha1.AutoscalingPolicySpec
	// limits are those of schedules at a second; nil for those of the spec.
	limits  func(second int) *v1alpha1.Limits
	without []Part
	// every is the poll interval in seconds.
	every   int
	state   policy.State
	desired int
	// input and decision are the last ones.
	input    policy.Input
	decision policy.Decision
	// falseCeilings were drawn while no downstream limit was reached.
	falseCeilings int
}

// FalseCeilings is the number of ceilings that the model contradicts.
func (c *capacity) FalseCeilings() int { return c.falseCeilings }

// Part is a part of the algorithm that can be left out, to measure its value. The policy does not know: what the part
// reads is hidden, what it learned is forgotten, or its result is replaced.
type Part struct {
	Name string
	// Hide takes away what the part reads or has learned.
	Hide func(*policy.Input, *policy.State)
	// Replace returns the replicas without the part.
	Replace func(policy.Decision) int32
}

// Without returns our controller without parts of the algorithm.
func Without(parts ...Part) New {
	return func(s model.Scenario) Controller { return newCapacity(s, parts...) }
}

// Policy returns our controller with the spec of a policy.
func Policy(spec v1alpha1.AutoscalingPolicySpec) New {
	return Limited(spec, func(int) *v1alpha1.Limits { return nil })
}

// Limited returns the same with limits of replicas that change, such as by schedules; nil for those of the spec.
func Limited(spec v1alpha1.AutoscalingPolicySpec, limits func(second int) *v1alpha1.Limits) New {
	return func(s model.Scenario) Controller {
		c := newCapacity(s)
		c.spec, c.limits = spec, limits
		return c
	}
}

// Polling returns our controller with a poll interval in seconds. Rates cover 10 s with any.
func Polling(every int) New {
	return func(s model.Scenario) Controller {
		c := newCapacity(s)
		c.every = every
		return c
	}
}

func newCapacity(s model.Scenario, without ...Part) *capacity {
	store, err := backlog.NewStore(pollEvery*time.Second, time.Minute, backlog.Bounds{})
	if err != nil {
		panic(err) // constants
	}
	c := &capacity{
		store: store,
		subscription: backlog.NewSubscription(backlog.Cluster{AdminURL: "http://pulsar:8080"}, model.Subscription,
			s.Topics()...),
		spec: v1alpha1.AutoscalingPolicySpec{
			ScalingSpec: v1alpha1.ScalingSpec{
				MinReplicas: new(int32(s.Min)), MaxReplicas: int32(s.Max), //nolint:gosec // small
				LatencyObjective: metav1.Duration{Duration: s.Objective},
			},
		},
		limits:  func(int) *v1alpha1.Limits { return nil },
		without: without, every: pollEvery,
		desired: s.Initial,
	}
	c.subscription.Workload = backlog.Object{Name: "fn"}
	store.Track("policy", c.subscription)
	return c
}

func (c *capacity) Replicas(system *model.System) int {
	if slices.Contains(system.Scenario().Restarts, system.Second()) {
		*c = *c.resumed(system)
	}
	if system.Second()%c.every == pollPhase%c.every {
		c.ask(system)
		c.scrape(system)
		c.decide(system)
	}
	if Every(hpaSync, system) || system.Replicas() == 0 { // at 0 the HPA is off
		return c.desired
	}
	return system.Replicas()
}

// resumed is the controller of a new process: all it has is the status that the last one wrote.
func (c *capacity) resumed(system *model.System) *capacity {
	text, err := c.state.Encode()
	if err != nil {
		panic(err) // every state can be written
	}
	fresh := newCapacity(system.Scenario(), c.without...)
	fresh.spec, fresh.limits, fresh.every = c.spec, c.limits, c.every
	fresh.desired, fresh.falseCeilings = c.desired, c.falseCeilings
	replicas := int32(system.Replicas()) //nolint:gosec // at most maxReplicas
	fresh.state, err = policy.Resume(text, replicas, system.Time())
	if err != nil {
		panic(err) // and read
	}
	return fresh
}

// ask requests all topics from Pulsar.
func (c *capacity) ask(system *model.System) {
	for i, name := range system.Scenario().Topics() {
		topic := backlog.Topic{Cluster: c.subscription.Cluster, Name: name}
		if sample, err := system.TopicSample(i); err != nil {
			c.store.Fail(topic, err)
		} else {
			c.store.Record(topic, sample)
		}
	}
}

// scrape requests the instances' metrics.
func (c *capacity) scrape(system *model.System) {
	c.store.RecordInstances(c.subscription.Workload, system.InstancesSample(), nil)
}

// decide makes a decision on the data.
func (c *capacity) decide(system *model.System) {
	in := policy.Input{
		Now: system.Time(), Spec: c.spec, PollInterval: time.Duration(c.every) * time.Second, Pods: pods(system),
		CurrentReplicas: int32(system.Replicas()), //nolint:gosec // small
	}
	if limits := c.limits(system.Second()); limits != nil {
		in.Spec.MinReplicas, in.Spec.MaxReplicas = &limits.MinReplicas, limits.MaxReplicas
	}
	in.Reading, in.Unknown = c.store.Read(c.subscription, system.Time())
	in.Partitions, _ = c.store.Partitions(c.subscription, system.Time()) // without them Failover is sized by the sum
	if upstream := system.Scenario().Upstream; upstream != nil {
		in.Upstream = upstream(system.Second())
	}
	for _, part := range c.without {
		if part.Hide != nil {
			part.Hide(&in, &c.state)
		}
	}
	decision, state := policy.Decide(in, c.state)
	for _, part := range c.without {
		if part.Replace != nil {
			decision.Replicas = part.Replace(decision)
		}
	}
	if c.state.Plateau.Ceiling() == 0 && state.Plateau.Ceiling() > 0 && !system.Limited() {
		c.falseCeilings++
	}
	c.state, c.desired = state, int(decision.Replicas)
	c.input, c.decision = in, decision
}

func pods(system *model.System) *policy.Pods {
	seen := system.Pods()
	return &policy.Pods{
		Ready: int32(seen.Ready), Unready: int32(seen.Unready), //nolint:gosec // small
		CrashLooping: int32(seen.CrashLooping), //nolint:gosec // small
		UnreadySince: seen.UnreadySince, Updating: seen.Updating,
	}
}

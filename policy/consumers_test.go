// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// consumed is the input of a target with spec.subscription: its consumers all have work and finish 100/s each of 400/s.
func consumed(replicas int32, consumers float64, subscription v1alpha1.Subscription) policy.Input {
	r := reading(20_000, 400)
	r.Consumers, r.SteadyConsumers = backlog.Known(consumers), true
	r.ProcessRate, r.LeastUndispatched = backlog.Known(100*consumers), backlog.Known(20_000)
	in := input(replicas, r)
	in.Spec.Subscription = &subscription
	in.Own = &replicas
	return in
}

func billing() v1alpha1.Subscription {
	return v1alpha1.Subscription{
		Topics: []v1alpha1.TopicName{"shop/orders/new"}, Name: "billing", Type: v1alpha1.SubscriptionShared,
		ConsumersPerReplica: 1,
	}
}

// polls decides for a time, every 10 s, with the same input except for the time.
func polls(in policy.Input, state policy.State, until time.Duration) (decision policy.Decision, after policy.State) {
	for at := time.Duration(0); at <= until; at += 10 * time.Second {
		in.Now, in.Reading.At = noon().Add(at), noon().Add(at)
		decision, state = policy.Decide(in, state)
	}
	return decision, state
}

func TestSurplusConsumersAreNoCapacity(t *testing.T) {
	four := int32(4)
	tests := map[string]struct {
		in      policy.Input
		surplus int32
		// each is the rate of one replica, and wait the time in seconds that the target alone needs for the backlog.
		each, wait float64
	}{
		"one consumer for each replica":          {consumed(4, 4, billing()), 0, 100, 50},
		"fewer consumers than replicas":          {consumed(4, 3, billing()), 0, 100, 67},
		"another workload on it":                 {consumed(4, 6, billing()), 2, 100, 50},
		"pods that a rolling update adds":        {owned(consumed(3, 4, billing()), &four), 0, 100, 50},
		"consumers that are not distinguishable": {owned(consumed(3, 4, billing()), nil), 0, 100, 50},
		"two consumers in each replica":          {consumed(2, 4, perReplica(2)), 0, 200, 50},
		"a replica that opened half":             {consumed(2, 3, perReplica(2)), 0, 150, 67},
		"two in each, and another workload":      {consumed(1, 6, perReplica(2)), 4, 200, 100},
		"no replica, and another workload":       {consumed(0, 2, billing()), 2, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.surplus, test.in.SurplusConsumers())
			decision, state := polls(test.in, policy.State{}, 3*time.Minute)
			if test.each == 0 {
				require.Nil(t, state.Capacity, "the target finishes no message")
				return
			}
			require.InDelta(t, test.each, state.Capacity.MessagesPerSecond, 1)
			wait, err := decision.Wait.Value()
			require.NoError(t, err)
			require.InDelta(t, test.wait, wait, 1)
		})
	}
}

func owned(in policy.Input, own *int32) policy.Input {
	in.Own = own
	return in
}

func perReplica(consumers int32) v1alpha1.Subscription {
	s := billing()
	s.ConsumersPerReplica = consumers
	return s
}

// TestAStartIsNotTakenForDoneByOthers: other consumers of the subscription are connected already.
func TestAStartIsNotTakenForDoneByOthers(t *testing.T) {
	in := consumed(2, 4, billing())
	_, state := polls(in, policy.State{}, time.Minute)
	in.CurrentReplicas, in.Own = 4, new(int32(4))
	in.Now, in.Reading.At = noon().Add(70*time.Second), noon().Add(70*time.Second)
	for range 3 {
		_, state = policy.Decide(in, state)
		require.True(t, state.Start.Open, "the two requested replicas do not consume yet")
		in.Now, in.Reading.At = in.Now.Add(10*time.Second), in.Reading.At.Add(10*time.Second)
	}
	in.Reading.Consumers = backlog.Known(6)
	_, state = policy.Decide(in, state)
	require.False(t, state.Start.Open)
	require.InDelta(t, 27.5, state.Start.Seconds, 1, "between the default, 25 s, and 30 s")
}

func TestTheStateIsDiscardedWithItsSubscription(t *testing.T) {
	changes := map[string]struct {
		change func(*v1alpha1.AutoscalingPolicySpec)
		forget bool
	}{
		"nothing": {func(*v1alpha1.AutoscalingPolicySpec) {}, false},
		"the long name of a topic": {func(s *v1alpha1.AutoscalingPolicySpec) {
			s.Subscription.Topics[0] = "persistent://shop/orders/new"
		}, false},
		"where Pulsar is": {func(s *v1alpha1.AutoscalingPolicySpec) {
			s.Pulsar = &v1alpha1.PulsarConnection{AdminURL: "http://elsewhere:8080"}
		}, false},
		"a topic": {func(s *v1alpha1.AutoscalingPolicySpec) { s.Subscription.Topics[0] = "shop/orders/old" }, true},
		"a pattern": {func(s *v1alpha1.AutoscalingPolicySpec) {
			s.Subscription.Topics, s.Subscription.TopicsPattern = nil, "shop/orders/.*"
		}, true},
		"the name":      {func(s *v1alpha1.AutoscalingPolicySpec) { s.Subscription.Name = "audit" }, true},
		"the type":      {func(s *v1alpha1.AutoscalingPolicySpec) { s.Subscription.Type = "Key_Shared" }, true},
		"the consumers": {func(s *v1alpha1.AutoscalingPolicySpec) { s.Subscription.ConsumersPerReplica = 2 }, true},
		"all of it":     {func(s *v1alpha1.AutoscalingPolicySpec) { s.Subscription = nil }, true},
	}
	for name, test := range changes {
		for _, unknown := range []error{nil, backlog.ErrNoData} {
			t.Run(fmt.Sprint(name, unknown), func(t *testing.T) {
				in := consumed(4, 4, billing())
				_, state := polls(in, policy.State{}, 3*time.Minute)
				state.Plateau = policy.Plateau{
					Stage: policy.Limited, Replicas: 5, Each: 100, Reference: policy.Output{Replicas: 6, Processed: 500},
				}
				state.Floor.Messages, state.Start.Seconds, state.Start.Count = 70, 40, 3
				test.change(&in.Spec)
				require.Equal(t, test.forget, state.Forgets(in.Spec))
				in.Now, in.Unknown = noon().Add(200*time.Second), unknown
				decision, after := policy.Decide(in, state)
				require.False(t, after.Forgets(in.Spec), "once is enough")
				require.InDelta(t, 40, after.Start.Seconds, 1, "how long a replica starts is the target's own")
				if !test.forget {
					require.Equal(t, state.Capacity.Observations, after.Capacity.Observations)
					return
				}
				require.Zero(t, after.Plateau.Ceiling())
				require.Zero(t, after.Floor.Messages)
				if unknown != nil {
					require.Nil(t, after.Capacity)
					require.Nil(t, after.Arrivals)
				}
				require.GreaterOrEqual(t, decision.Replicas, int32(4), "replicas are held for a stabilization window")
			})
		}
	}
}

func TestReplicasWithSeveralConsumersShareThePartitions(t *testing.T) {
	in := consumed(2, 4, perReplica(2))
	in.Spec.Subscription.Type, in.Reading.Type = v1alpha1.SubscriptionFailover, backlog.Failover
	in.Reading.Partitions = 6
	for i := range 6 {
		in.Partitions = append(in.Partitions, backlog.PartitionReading{
			Topic: "persistent://shop/orders/new", Index: i, Ready: backlog.Known(5000), PublishRate: backlog.Known(200),
			ProcessRate: backlog.Known(70), Consumers: backlog.Known(4),
		})
	}
	in.Reading.PublishRate = backlog.Known(1200)
	state := policy.State{Arrivals: arrivals(1200), Capacity: learned(400)}
	state.Subscription = subscriptionOf(t, in)
	decision, _ := policy.Decide(in, state)
	require.Equal(t, int32(3), decision.Replicas, "six consumers, of which each has a partition")
}

// subscriptionOf is the fingerprint of the input's subscription.
func subscriptionOf(t *testing.T, in policy.Input) string {
	t.Helper()
	_, state := policy.Decide(in, policy.State{})
	return state.Subscription
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// capacityPolicy scales on a measured capacity of 10 messages per second.
func capacityPolicy() *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	resumesCapacity(p, policy.LearnedCapacity{
		MessagesPerSecond: 10, Variance: 0.05 * 0.05, Coverage: 0.8, Observations: 40, LearnedAt: time.Unix(1_799_999_900, 0),
	})
	return p
}

// resumesCapacity gives the policy a status of 3 replicas, from which the capacity is resumed.
func resumesCapacity(p *v1alpha1.AutoscalingPolicy, learned policy.LearnedCapacity) {
	checkpoint, err := policy.State{Capacity: &learned}.Encode()
	if err != nil {
		panic(err)
	}
	p.Status = v1alpha1.AutoscalingPolicyStatus{
		ObservedGeneration: 1, DesiredReplicas: new(int32(3)), WorkingCheckpoint: checkpoint,
	}
}

// answerPartitions stores a broker response for a partitioned topic: published is per partition, without a backlog.
func (env *testEnv) answerPartitions(kind backlog.SubscriptionType, published ...int64) {
	sample := backlog.TopicSample{At: env.now, Detail: backlog.Full}
	for i, count := range published {
		entries := count
		sample.Partitions = append(sample.Partitions, backlog.PartitionSample{
			Index: i, PublishedMessages: count, AddedEntries: &entries,
			Subscriptions: []backlog.SubscriptionSample{{
				Name: "public/default/resize", Type: kind, DeliveredMessages: count,
				Consumers: []backlog.ConsumerSample{{ID: "0"}, {ID: "1"}, {ID: "2"}},
			}},
		})
	}
	env.store.Record(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}, sample)
}

// input is the input of the next decision.
func (env *testEnv) input() policy.Input {
	env.t.Helper()
	observed, err := env.reconciler.observer.observe(env.t.Context(), env.policy(), env.now)
	require.NoError(env.t, err)
	observed.Measured = env.reconciler.observer.measure(observed, backlog.Usual)
	return plan.Input(observed)
}

func TestOnlyFailoverIsDecidedByPartition(t *testing.T) {
	for kind, want := range map[backlog.SubscriptionType]int{
		backlog.Failover: 4, backlog.Shared: 0,
		backlog.KeyShared: 0,
	} {
		t.Run(string(kind), func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
			env.reconcile()
			require.ErrorIs(t, env.input().Unknown, backlog.ErrNoData)
			env.answerPartitions(kind, 0, 0, 0, 0)
			env.after(testInterval)
			env.answerPartitions(kind, 15*9, 15*3, 15*2, 15*1)
			in := env.input()
			require.NoError(t, in.Unknown)
			require.Equal(t, int32(3), in.CurrentReplicas)
			require.Equal(t, env.now, in.Now)
			require.Len(t, in.Partitions, want)
			for i, rate := range []float64{9, 3, 2, 1}[:want] {
				published, err := in.Partitions[i].PublishRate.Value()
				require.NoError(t, err)
				require.InDelta(t, rate, published, 1e-9)
				require.Equal(t, i, in.Partitions[i].Index)
			}
		})
	}
}

func TestATopicThatIsUnknownLeavesTheOthers(t *testing.T) {
	function, p := fixture.Function(), fixture.Policy()
	fixture.Spec(function)["input"] = map[string]any{"topics": []any{fixture.Topic, "retired"}}
	env := newTestEnv(t, function, p, fixture.ConfigMap())
	env.reconcile()
	env.store.Record(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}, backlog.TopicSample{
		At: env.now, Partitions: []backlog.PartitionSample{{
			Index: backlog.NotPartitioned,
			Subscriptions: []backlog.SubscriptionSample{{
				Name: "public/default/resize", Type: backlog.Shared, BacklogEntries: 7,
			}},
		}},
	})
	env.store.Fail(backlog.Topic{Cluster: fixture.Cluster(), Name: "persistent://public/default/retired"},
		backlog.ErrTopicNotFound)
	in := env.input()
	require.NoError(t, in.Unknown)
	require.False(t, in.Reading.Coverage.Complete())
	ready, err := in.Reading.Ready.LowerBound()
	require.NoError(t, err)
	require.InDelta(t, 7, ready, 0)
}

func TestAPromisedTypeCountsUntilTheBrokerKnowsOne(t *testing.T) {
	for kind, want := range map[backlog.SubscriptionType]int{backlog.NoType: 4, backlog.Shared: 0} {
		t.Run(string(kind), func(t *testing.T) {
			function := fixture.Function()
			fixture.Spec(function)["retainOrdering"] = true
			env := newTestEnv(t, function, fixture.Policy(), fixture.ConfigMap())
			env.reconcile()
			env.answerPartitions(kind, 0, 0, 0, 0)
			in := env.input()
			require.NoError(t, in.Unknown)
			require.Equal(t, backlog.Failover, in.Promised)
			require.Equal(t, kind, in.Reading.Type, "what is shown is what the broker says")
			require.Len(t, in.Partitions, want)
		})
	}
}

func TestAFailoverTargetIsSizedForItsBusiestPartition(t *testing.T) {
	tests := map[string]struct {
		rates       []int64
		least, most int32
	}{
		"two have most: 3 replicas are enough for the sum, and 4 put both on one consumer": {
			rates: []int64{8, 1, 1, 1, 8, 1, 1, 1}, least: 5, most: 8,
		},
		"each has more than a consumer can do: never more than there are partitions": {
			rates: []int64{50, 50, 50, 50},
			least: 4, most: 4,
		},
		"evenly: as many as the sum needs, and each has as many partitions": {
			rates: []int64{6, 6, 6, 6}, least: 4,
			most: 4,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			function := fixture.Function()
			fixture.Spec(function)["replicas"] = int64(2)
			env := newTestEnv(t, function, capacityPolicy(), fixture.ConfigMap())
			env.reconcile()
			published := make([]int64, len(test.rates))
			for range 8 {
				env.answerPartitions(backlog.Failover, published...)
				env.reconcile()
				env.after(testInterval)
				for i, rate := range test.rates {
					published[i] += int64(testInterval.Seconds()) * rate
				}
			}
			desired := *env.policy().Status.DesiredReplicas
			require.GreaterOrEqual(t, desired, test.least, env.policy().Status.Decision)
			require.LessOrEqual(t, desired, test.most, env.policy().Status.Decision)
		})
	}
}

// knownPods answers for one workload.
type knownPods struct {
	workload backlog.Object
	pods     policy.Pods
	fails    error
}

func (k knownPods) Selected(namespace, selector string) (policy.Pods, error) {
	return k.Health(backlog.Object{Namespace: namespace, Name: selector})
}

func (k knownPods) Health(workload backlog.Object) (policy.Pods, error) {
	if k.fails != nil {
		return policy.Pods{}, k.fails
	}
	if workload != k.workload {
		return policy.Pods{}, fmt.Errorf("%s is none of ours", workload)
	}
	return k.pods, nil
}

func TestADecisionUsesKnownPodHealth(t *testing.T) {
	resize := backlog.Object{Kind: "Function", Namespace: "media", Name: "resize"}
	troubled := policy.Pods{Unready: 2, UnreadySince: time.Unix(1_800_000_000, 0), CrashLooping: 1, Updating: true}
	tests := map[string]struct {
		pods Health
		want *policy.Pods
	}{
		"of those that have troubles": {pods: knownPods{workload: resize, pods: troubled}, want: &troubled},
		"of those that have none":     {pods: knownPods{workload: resize}, want: &policy.Pods{}},
		"not while they are read":     {pods: knownPods{fails: backlog.ErrNoData}},
		"not if they are forbidden":   {pods: knownPods{fails: backlog.ErrForbidden}},
		"not if pods are ignored":     {},
		"not of the pods of another workload": {
			pods: knownPods{workload: backlog.Object{Kind: "Sink", Namespace: "media", Name: "resize"}},
		},
		"not of the pods of another's namespace": {
			pods: knownPods{workload: backlog.Object{Kind: "Function", Namespace: "shop", Name: "resize"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
			env.pods = test.pods
			env.restart()
			env.firstDecision(700)
			require.Equal(t, test.want, env.input().Pods)
		})
	}
}

func TestARestartGoesOnWithTheStateThatWasWritten(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), capacityPolicy(), fixture.ConfigMap())
	env.reconcile()
	published := int64(10_000)
	for range 3 {
		passes := 0
		for wrote := false; passes < 4 || !wrote; passes++ {
			require.Less(t, passes, 40, "the status is written every few minutes")
			env.after(testInterval)
			published += 15 * int64(20+passes)
			env.answer(0, published)
			wrote = slices.Contains(env.reconcile(), "patch status")
		}
		before := *env.reconciler.memories.byKey[fixture.Key()].resume
		env.restart()
		env.reconcile()
		after := *env.reconciler.memories.byKey[fixture.Key()].resume
		require.NotNil(t, after.Capacity)
		require.InEpsilon(t, before.Capacity.MessagesPerSecond, after.Capacity.MessagesPerSecond, 1e-3)
		require.InEpsilon(t, before.Capacity.Variance, after.Capacity.Variance, 1e-3)
		require.InEpsilon(t, before.Capacity.Coverage, after.Capacity.Coverage, 1e-3)
		require.Equal(t, before.Capacity.Observations, after.Capacity.Observations)
		require.WithinDuration(t, before.Capacity.LearnedAt, after.Capacity.LearnedAt, time.Second)
		require.InEpsilon(t, before.Arrivals.Rate, after.Arrivals.Rate, 1e-3)
		require.WithinDuration(t, before.LearnedAt, after.LearnedAt, time.Second)
	}
}

func TestAProcessGoesOnWithWhatItKnowsAndNotWithWhatItWrote(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), capacityPolicy(), fixture.ConfigMap())
	env.reconcile()
	written := env.policy()
	resumesCapacity(written, policy.LearnedCapacity{MessagesPerSecond: 99, Observations: 40, LearnedAt: env.now})
	require.NoError(t, env.client.Status().Update(t.Context(), written))
	env.after(testInterval)
	env.answer(0, 10_000)
	env.reconcile()
	require.InDelta(t, 10, env.reconciler.memories.byKey[fixture.Key()].resume.Capacity.MessagesPerSecond, 1e-9)
}

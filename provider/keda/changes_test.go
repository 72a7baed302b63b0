// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestChangesAreBatched(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		counted := &countingSignals{environment: env}
		s.evaluator.config.Signals = counted
		env.change(func() { env.readings[topicSubject()] = reading(time.Now()) })
		open(t, nil, ref("topic", "orders", "subscription", "resize", "messagesPerReplica", "10"), s.StreamIsActive)
		time.Sleep(refreshEvery)
		before := counted.count()
		const seconds = 10
		for range seconds * 1000 {
			s.TopicChanged(backlog.Topic{Name: "persistent://public/default/orders"})
			s.TopicChanged(backlog.Topic{Name: "persistent://public/default/other"})
			time.Sleep(time.Millisecond)
		}
		looks := counted.count() - before
		require.LessOrEqual(t, looks, seconds*int(time.Second/minPause))
		require.Greater(t, looks, seconds)
	})
}

// countingSignals counts its reads.
type countingSignals struct {
	*environment
	times int
}

func (c *countingSignals) Read(subject Subject, now time.Time) (backlog.Reading, error) {
	c.change(func() { c.times++ })
	return c.environment.Read(subject, now)
}

func (c *countingSignals) count() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.times
}

func TestChangesAffectTriggers(t *testing.T) {
	policyTrigger := Trigger{Subject: Subject{Namespace: inNamespace, Policy: "resize"}}
	borrowing := policyTrigger
	borrowing.Strategy = v1alpha1.StrategyRatePerReplica
	topics := Trigger{
		Subject:  Subject{Topics: "persistent://a/b/c,persistent://a/b/d", Subscription: "s"},
		Strategy: v1alpha1.StrategyBacklogPerReplica,
	}
	target := Trigger{
		Subject:  Subject{Namespace: inNamespace, Target: Target{"Function", "resize"}},
		Strategy: v1alpha1.StrategyBacklogPerReplica,
	}
	set := func(name string) map[string]struct{} { return map[string]struct{}{name: {}} }
	keys := func(name string) map[types.NamespacedName]struct{} {
		return map[types.NamespacedName]struct{}{{Namespace: inNamespace, Name: name}: {}}
	}
	for name, test := range map[string]struct {
		changes  changes
		affected []Trigger
	}{
		"no change affects no trigger":      {changes{}, nil},
		"all changes affect all triggers":   {changes{all: true}, []Trigger{policyTrigger, borrowing, topics, target}},
		"a policy affects its triggers":     {changes{policies: keys("resize")}, []Trigger{policyTrigger, borrowing}},
		"another policy affects no trigger": {changes{policies: keys("other")}, nil},
		"a topic may be that of an object or a policy": {
			changes{topics: set("persistent://a/b/d")},
			[]Trigger{borrowing, topics, target},
		},
		"another topic does not affect triggers of topics": {changes{topics: set("persistent://a/b")}, []Trigger{borrowing, target}},
	} {
		t.Run(name, func(t *testing.T) {
			var affected []Trigger
			for _, trigger := range []Trigger{policyTrigger, borrowing, topics, target} {
				if test.changes.affect(trigger) {
					affected = append(affected, trigger)
				}
			}
			require.Equal(t, test.affected, affected)
		})
	}
	t.Run("too many changes affect all triggers", func(t *testing.T) {
		q := newChangeQueue()
		for i := range maxChanges + 1 {
			q.add(func(c *changes) { c.topics[fmt.Sprint(i)] = struct{}{} })
		}
		require.True(t, q.drain().all)
		require.Equal(t, changes{}, q.drain())
	})
}

// BenchmarkRefreshAfterATopicChanged refreshes 10,000 streams of objects, any of which may consume the topic, at most
// 10 times a second.
func BenchmarkRefreshAfterATopicChanged(b *testing.B) {
	for _, strategy := range []v1alpha1.StrategyType{v1alpha1.StrategyBacklogPerReplica, v1alpha1.StrategyUtilization} {
		b.Run(string(strategy), func(b *testing.B) {
			env := newEnvironment()
			s := env.server()
			for i := range 10_000 {
				subject := Subject{Namespace: inNamespace, Target: Target{"Function", fmt.Sprint("function-", i)}}
				object := types.NamespacedName{Namespace: inNamespace, Name: subject.Target.Name}
				env.readings[subject], env.replicas[object] = reading(env.now), 4
				_, _, err := s.watches.add(Trigger{Object: object, Subject: subject, Strategy: strategy, Threshold: 100},
					time.Time{})
				require.NoError(b, err)
			}
			s.refreshAll(changes{all: true}, env.now)
			s.refreshAll(changes{all: true}, env.now)
			for b.Loop() {
				s.refreshAll(changes{topics: map[string]struct{}{"persistent://a/b/c": {}}}, env.now)
			}
		})
	}
}

// BenchmarkRefreshOfPolicies refreshes 10,000 streams, each of its own policy, at most 10 times a second.
func BenchmarkRefreshOfPolicies(b *testing.B) {
	const streams = 10_000
	env := newEnvironment()
	s := env.server()
	for i := range streams {
		subject := Subject{Namespace: inNamespace, Policy: fmt.Sprint("policy-", i)}
		env.policies[types.NamespacedName{Namespace: inNamespace, Name: subject.Policy}] = decidedPolicy(3, env.now)
		_, _, err := s.watches.add(Trigger{
			Object:  types.NamespacedName{Namespace: inNamespace, Name: subject.Policy},
			Subject: subject,
		}, time.Time{})
		require.NoError(b, err)
	}
	for name, n := range map[string]changes{
		"all":   {all: true},
		"one":   {policies: map[types.NamespacedName]struct{}{{Namespace: inNamespace, Name: "policy-7"}: {}}},
		"topic": {topics: map[string]struct{}{"persistent://a/b/c": {}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.refreshAll(n, env.now)
			}
		})
	}
}

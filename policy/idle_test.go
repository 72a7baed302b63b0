// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// idlePattern is a pattern of topics without work, polled through a real Store: topics every 10 s, spread over that
// time, and their listing every 30 s.
type idlePattern struct {
	store        *backlog.Store
	feed         *backlog.Feed
	subscription backlog.Subscription
	names        []string
	// published messages of each topic since it was loaded, all of them processed.
	published []int64
	polled    []bool
	listed    int
}

func newIdlePattern(t *testing.T, topics int) *idlePattern {
	t.Helper()
	store, err := backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
	require.NoError(t, err)
	pattern, err := backlog.ParsePattern("persistent://public/default/in-.*")
	require.NoError(t, err)
	p := &idlePattern{
		store: store, feed: store.Feed(false),
		subscription: backlog.NewSubscription(backlog.Cluster{}, "public/default/resize").WithPatterns(pattern),
	}
	for range topics {
		p.add(1000)
	}
	store.Track("me", p.subscription)
	return p
}

func (p *idlePattern) add(published int64) {
	p.names = append(p.names, fmt.Sprintf("persistent://public/default/in-%03d", len(p.names)))
	p.published, p.polled = append(p.published, published), append(p.polled, false)
}

func (p *idlePattern) poll(second int) {
	const interval, listing = 10, 30
	now := noon().Add(time.Duration(second) * time.Second)
	if second%listing == 0 {
		listing := p.feed.NextListing(backlog.Namespace{Name: "public/default"})
		for _, name := range p.names {
			listing.Add(name)
		}
		p.store.RecordListing(listing, now, nil)
		p.listed = len(p.names)
	}
	for i, name := range p.names[:p.listed] {
		if p.polled[i] && second%interval != i%interval {
			continue
		}
		p.polled[i] = true
		topic := backlog.Topic{Name: name}
		p.store.Record(topic, backlog.TopicSample{
			At: now, Detail: p.feed.NextRequest(topic, now).Detail, Partitions: []backlog.PartitionSample{{
				Index: backlog.NotPartitioned, PublishedMessages: p.published[i],
				Subscriptions: []backlog.SubscriptionSample{{
					Name: p.subscription.Name, Type: backlog.Shared, DeliveredMessages: p.published[i],
					Consumers: []backlog.ConsumerSample{{ID: "public/default/resize#0", Name: "x1y2z"}},
				}},
			}},
		})
	}
}

func TestAnIdlePatternReachesZeroWhateverItsTopicsDo(t *testing.T) {
	const everyFourMinutes = 240
	tests := map[string]func(p *idlePattern, second int){
		"no topic changes":                    func(*idlePattern, int) {},
		"a new empty topic every 4 min":       func(p *idlePattern, _ int) { p.add(0) },
		"an idle topic is unloaded each time": func(p *idlePattern, second int) { p.published[second/everyFourMinutes] = 0 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			p := newIdlePattern(t, 50)
			in := input(1, backlog.Reading{})
			in.Spec.MinReplicas = new(int32)
			cooldown := policy.Cooldown(in.Spec)
			state := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
			for second := range int(2 * cooldown / time.Second) {
				if second%everyFourMinutes == everyFourMinutes/2+7 {
					change(p, second)
				}
				p.poll(second)
				in.Now = noon().Add(time.Duration(second) * time.Second)
				in.Reading, in.Unknown = p.store.Read(p.subscription, in.Now)
				var decision policy.Decision
				if decision, state = policy.Decide(in, state); decision.Replicas == 0 {
					require.GreaterOrEqual(t, time.Duration(second)*time.Second, cooldown)
					return
				}
			}
			t.Fatalf("not at zero after %s", 2*cooldown)
		})
	}
}

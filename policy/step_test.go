// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// polled is a Function with a topic and instances that are polled at different times, in ticks of a tenth of a second.
// A load step enters the rate window in pieces, and a decision is made on each of them.
type polled struct {
	rate func(at time.Duration) float64
	// one is the rate that a replica processes, in messages per second.
	one                float64
	poll, sync, offset time.Duration

	random       *rand.Rand
	store        *backlog.Store
	subscription backlog.Subscription
	state        policy.State
	now          time.Duration
	// published and delivered messages, and those in the queue, most of them in receive queues.
	published, delivered, queue float64
	// ready is when each replica starts to consume, done its finished messages and busy the seconds of work.
	ready      []time.Duration
	done, busy []float64
	desired    int32
	raises     []int32
}

const (
	tick = 100 * time.Millisecond
	// startsIn is how long a replica takes to consume, answersIn the maximum delay of an answer.
	startsIn, answersIn = 5 * time.Second, 300 * time.Millisecond
	receiverQueue       = 1000
	polledTopic         = "persistent://public/default/in"
	polledName          = "public/default/fn"
)

func newPolled(seed uint64, replicas int32, one float64, poll, window time.Duration) *polled {
	store, err := backlog.NewStore(window, 10*poll, backlog.Bounds{})
	if err != nil {
		panic(err) // constants
	}
	random := rand.New(rand.NewPCG(seed, 1))
	p := &polled{
		one: one, poll: poll, offset: tick * time.Duration(random.IntN(int(poll/tick))), random: random,
		store: store, desired: replicas, subscription: backlog.NewSubscription(
			backlog.Cluster{AdminURL: "http://pulsar:8080"}, polledName, polledTopic),
	}
	p.subscription.Workload = backlog.Object{Name: polledName}
	store.Track("policy", p.subscription)
	p.scaleTo(replicas, 0)
	return p
}

func (p *polled) scaleTo(replicas int32, startsIn time.Duration) {
	for len(p.ready) < int(replicas) {
		p.ready, p.done, p.busy = append(p.ready, p.now+startsIn), append(p.done, 0), append(p.busy, 0)
	}
	p.ready, p.done, p.busy = p.ready[:replicas], p.done[:replicas], p.busy[:replicas]
}

// due reports whether a periodic action, with a delay after another, is due now.
func (p *polled) due(period, after time.Duration) bool { return (p.now-p.offset-after)%period == 0 }

func (p *polled) run(until time.Duration) {
	for p.now < until {
		p.now += tick
		p.work()
		if p.due(p.poll, 0) {
			p.store.Record(backlog.Topic{Cluster: p.subscription.Cluster, Name: polledTopic}, p.sample())
			p.decide()
		}
		if p.due(p.poll, 3*tick) {
			p.store.RecordInstances(p.subscription.Workload, p.instances(), nil)
			p.decide()
		}
		if p.due(p.sync, 6*tick) {
			if int(p.desired) > len(p.ready) {
				p.raises = append(p.raises, p.desired)
			}
			p.scaleTo(p.desired, startsIn)
		}
	}
}

func (p *polled) consuming() (n int) {
	for _, at := range p.ready {
		if p.now >= at {
			n++
		}
	}
	return n
}

func (p *polled) work() {
	arrived := p.rate(p.now) * tick.Seconds() * (0.8 + 0.4*p.random.Float64())
	n := float64(p.consuming())
	p.published += arrived
	p.queue += arrived
	done := min(p.queue, n*p.one*tick.Seconds())
	p.queue -= done
	p.delivered = max(p.delivered, p.published-max(0, p.queue-receiverQueue*n))
	for i, at := range p.ready {
		if p.now >= at {
			p.done[i] += done / n
			p.busy[i] += usual * done / n / p.one
		}
	}
}

func (p *polled) at() time.Time { return noon().Add(p.now) }

func (p *polled) sample() backlog.TopicSample {
	entries := int64(p.published)
	subscription := backlog.SubscriptionSample{
		Name: polledName, Type: backlog.Shared, BacklogEntries: int64(math.Ceil(p.queue)),
		DeliveredMessages: int64(p.delivered), UnackedMessages: int64(max(0, p.queue-(p.published-p.delivered))),
	}
	for i := range p.consuming() {
		consumer := backlog.ConsumerSample{ID: strconv.Itoa(i), Component: polledName, MeanBatch: 1}
		subscription.Consumers = append(subscription.Consumers, consumer)
	}
	return backlog.TopicSample{
		At:     p.at().Add(time.Duration(p.random.Float64() * float64(answersIn))),
		Detail: backlog.Full | backlog.Precise,
		Partitions: []backlog.PartitionSample{{
			Index: backlog.NotPartitioned, PublishedMessages: entries, AddedEntries: &entries,
			Subscriptions: []backlog.SubscriptionSample{subscription},
		}},
	}
}

func (p *polled) instances() backlog.InstancesSample {
	sample := backlog.InstancesSample{At: p.at()}
	for i, at := range p.ready {
		if p.now < at {
			sample.Silent++
			continue
		}
		calls, busy := int64(p.done[i]), time.Duration(p.busy[i]*float64(time.Second))
		sample.Instances = append(sample.Instances, backlog.InstanceSample{
			ID: strconv.Itoa(i), Received: calls + 1, Processed: calls, Calls: &calls, BusyTime: &busy,
			FailedCallsCounted: true,
		})
	}
	return sample
}

func (p *polled) decide() {
	in := input(int32(len(p.ready)), backlog.Reading{})
	in.Now, in.PollInterval = p.at().Add(answersIn), p.poll
	in.Spec.LatencyObjective.Duration = 30 * time.Second
	in.Reading, in.Unknown = p.store.Read(p.subscription, in.Now)
	decision, after := policy.Decide(in, p.state)
	p.state, p.desired = after, decision.Replicas
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// The load rises once, at a random time within a poll, and answers are up to 0.3 s late. Rarely three polls each show a
// part of it.
func TestLoadStepTakesTwoRaisesAtMost(t *testing.T) {
	t.Parallel()
	const calm, lasts, seeds = time.Minute, 90 * time.Second, 60
	tests := map[string]struct {
		replicas       int32
		one, low, high float64
		// poll, window, sync and the latest time of enough replicas, in seconds.
		poll, window, sync, within int
	}{
		"polls faster than the window and a fast HPA": {3, 25, 50, 150, 1, 4, 1, 10},
		"the same from one replica":                   {1, 40, 8, 132, 1, 4, 1, 30},
		"polls faster than the window":                {3, 25, 50, 150, 2, 10, 15, 30},
		"the default poll and window":                 {3, 25, 50, 150, 10, 10, 15, 31},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			thrice := 0
			for seed := range uint64(seeds) {
				p := newPolled(seed, test.replicas, test.one, seconds(test.poll), seconds(test.window))
				p.sync = seconds(test.sync)
				p.rate = func(at time.Duration) float64 {
					if at > calm {
						return test.high
					}
					return test.low
				}
				p.run(calm)
				require.Empty(t, p.raises, "seed %d", seed)
				p.run(calm + seconds(test.within))
				require.GreaterOrEqual(t, float64(len(p.ready))*test.one, test.high, "seed %d: replicas for the arrivals", seed)
				p.run(calm + lasts)
				require.LessOrEqual(t, len(p.raises), 3, "seed %d: raises %v", seed, p.raises)
				if len(p.raises) == 3 {
					thrice++
				}
			}
			require.LessOrEqual(t, thrice, seeds/30)
		})
	}
}

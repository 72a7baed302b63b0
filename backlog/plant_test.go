// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// plant is a topic with known true counts: all messages that were published, delivered and acknowledged. Its brokers
// count since they loaded a partition, and it forgets nothing.
type plant struct {
	random     *rand.Rand
	at         time.Time
	partitions []*plantPartition
	consumers  []string
	joined     int
	looks      []plantLook
}

type plantPartition struct {
	// held messages are delivered and neither acknowledged nor redelivered.
	published, delivered, finished, held int64
	// since it was loaded.
	publishedCounter, deliveredCounter int64
}

// plantLook has the true counts at an answer.
type plantLook struct {
	at         time.Time
	partitions []plantPartition
	// unloaded and gaveBack are the events of a partition since the previous answer.
	unloaded, gaveBack []bool
}

func newPlant(seed uint64) *plant {
	p := &plant{random: rand.New(rand.NewPCG(seed, 1)), at: start()}
	for range 1 + p.random.IntN(6) {
		p.partitions = append(p.partitions, &plantPartition{})
	}
	p.join(1 + p.random.IntN(3))
	for _, partition := range p.partitions { // it did not start at the first answer
		partition.work(p.random, len(p.consumers) > 0)
	}
	p.look(make([]bool, len(p.partitions)), make([]bool, len(p.partitions)))
	return p
}

func (p *plant) join(count int) {
	for range count {
		p.consumers = append(p.consumers, fmt.Sprintf("consumer %d", p.joined))
		p.joined++
	}
}

func (p *plant) look(unloaded, gaveBack []bool) {
	l := plantLook{at: p.at, unloaded: unloaded, gaveBack: gaveBack}
	for _, partition := range p.partitions {
		l.partitions = append(l.partitions, *partition)
	}
	p.looks = append(p.looks, l)
}

// step lets up to 20 s pass, occasionally with faults.
func (p *plant) step() {
	p.at = p.at.Add(time.Duration(1+p.random.IntN(20_000)) * time.Millisecond)
	if p.random.IntN(10) == 0 {
		p.partitions = append(p.partitions, &plantPartition{})
	}
	unloaded, gaveBack := make([]bool, len(p.partitions)), make([]bool, len(p.partitions))
	left := p.changeConsumers()
	for i, partition := range p.partitions {
		if left && partition.held > 0 {
			partition.held, gaveBack[i] = 0, true
		}
		before := *partition
		partition.work(p.random, len(p.consumers) > 0)
		if p.random.IntN(8) == 0 && partition.unload(before, p.random, len(p.consumers) > 0) {
			unloaded[i] = true
		}
	}
	p.look(unloaded, gaveBack)
}

// changeConsumers lets some consumers join, or some leave and none join.
func (p *plant) changeConsumers() (left bool) {
	switch p.random.IntN(10) {
	case 0:
		p.join(1)
	case 1:
		if len(p.consumers) > 0 {
			p.consumers = slices.Clone(p.consumers[1:])
			p.join(p.random.IntN(2))
			return true
		}
	}
	return false
}

func (q *plantPartition) work(random *rand.Rand, consumed bool) {
	published, delivered := random.Int64N(1000), random.Int64N(1000)
	if !consumed {
		delivered = 0
	}
	q.published += published
	q.publishedCounter += published
	q.delivered += delivered
	q.deliveredCounter += delivered
	q.held += delivered
	finished := random.Int64N(q.held + 1)
	q.held -= finished
	q.finished += finished
}

// unload lets the partition be loaded again within the step, if one of its counters falls and shows it.
func (q *plantPartition) unload(before plantPartition, random *rand.Rand, consumed bool) bool {
	published, delivered := random.Int64N(1000), random.Int64N(1000)
	if published >= before.publishedCounter && delivered >= before.deliveredCounter {
		return false
	}
	q.publishedCounter, q.deliveredCounter = published, delivered
	if q.held = 0; consumed {
		q.held = random.Int64N(delivered + 1)
	}
	return true
}

// answer is the brokers' answer, in no order.
func (p *plant) answer() backlog.TopicSample {
	parts := make([]part, 0, len(p.partitions))
	for _, q := range p.partitions {
		parts = append(parts, part{
			published: q.publishedCounter, delivered: q.deliveredCounter, unacked: q.held, backlog: q.published,
			consumers: p.consumers,
		})
	}
	sample := partitioned(0, backlog.Full, parts...)
	sample.At = p.at
	p.random.Shuffle(len(parts), func(i, j int) {
		sample.Partitions[i], sample.Partitions[j] = sample.Partitions[j], sample.Partitions[i]
	})
	return sample
}

// rates are the true rates on one partition over the window, over the valid pairs of answers.
func (p *plant) rates(i int) (published, delivered, finished float64, known, finishedKnown bool) {
	var seen, finishedSeen time.Duration
	for n := len(p.looks) - 1; n > 0 && p.looks[n].at.After(p.at.Add(-rateWindow*9/10)); n-- { // with a tenth of slack
		now, before := p.looks[n], p.looks[n-1]
		if i >= len(now.partitions) {
			break
		}
		var was plantPartition
		if i < len(before.partitions) {
			was = before.partitions[i]
		}
		if now.unloaded[i] {
			continue
		}
		seen += now.at.Sub(before.at)
		published += float64(now.partitions[i].published - was.published)
		delivered += float64(now.partitions[i].delivered - was.delivered)
		if now.gaveBack[i] {
			continue
		}
		finishedSeen += now.at.Sub(before.at)
		finished += float64(now.partitions[i].finished - was.finished)
	}
	return published / seen.Seconds(), delivered / seen.Seconds(), finished / finishedSeen.Seconds(), seen > 0,
		finishedSeen > 0
}

func agree(t *testing.T, want float64, known bool, got backlog.Measurement) {
	t.Helper()
	value, err := got.Value()
	if !known { // the last rate, or none
		if err != nil {
			require.ErrorIs(t, err, backlog.ErrNoRate)
		}
		return
	}
	require.NoError(t, err)
	require.InDelta(t, want, value, 1e-6)
}

func TestRatesAreTrueThroughUnloadsAndChanges(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			plant, store := newPlant(seed), newStore(t)
			subscription := backlog.NewSubscription(cluster(), function, orders)
			store.Track("me", subscription)
			for range 40 {
				store.Record(topic(orders), plant.answer())
				checkRates(t, plant, store, subscription)
				plant.step()
			}
		})
	}
}

func checkRates(t *testing.T, plant *plant, store *backlog.Store, subscription backlog.Subscription) {
	t.Helper()
	reading, err := store.Read(subscription, plant.at)
	require.NoError(t, err)
	partitions, err := store.Partitions(subscription, plant.at)
	require.NoError(t, err)
	require.Len(t, partitions, len(plant.partitions))

	var publishedSum, deliveredSum, finishedSum float64
	allKnown, allFinishedKnown := true, true
	for i, partition := range partitions {
		published, delivered, finished, known, finishedKnown := plant.rates(i)
		agree(t, published, known, partition.PublishRate)
		agree(t, finished, finishedKnown, partition.ProcessRate)
		publishedSum, deliveredSum, finishedSum = publishedSum+published, deliveredSum+delivered, finishedSum+finished
		allKnown, allFinishedKnown = allKnown && known, allFinishedKnown && finishedKnown
	}
	agree(t, publishedSum, allKnown, reading.PublishRate)
	agree(t, deliveredSum, allKnown, reading.DeliveryRate)
	agree(t, finishedSum, allFinishedKnown, reading.ProcessRate)
}

func BenchmarkPartitionsAt10kTopics(b *testing.B) {
	const count = 10
	store := newStore(b)
	subscriptions := make([]backlog.Subscription, 10_000)
	parts := make([]part, count)
	for i := range subscriptions {
		name := fmt.Sprintf("%s-%d", orders, i)
		subscriptions[i] = backlog.NewSubscription(cluster(), function, name)
		store.Track(name, subscriptions[i])
		for at := range 6 {
			for j := range parts {
				parts[j] = part{published: int64(100 * at), delivered: int64(90 * at), backlog: 5}
			}
			store.Record(topic(name), partitioned(2*at, backlog.Slim, parts...))
		}
	}
	now := start().Add(10 * time.Second)
	b.ReportAllocs()
	b.ResetTimer()
	i := 0
	for b.Loop() {
		readings, err := store.Partitions(subscriptions[i%len(subscriptions)], now)
		if err != nil || len(readings) != count {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkRecordAt100Partitions(b *testing.B) {
	store := newStore(b)
	subscription := backlog.NewSubscription(cluster(), function, orders)
	store.Track("me", subscription)
	parts := make([]part, 100)
	for j := range parts {
		parts[j] = part{published: 100, delivered: 90, backlog: 5, consumers: []string{"a", "b", "c"}}
	}
	sample := partitioned(0, backlog.Full, parts...)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		sample.At = sample.At.Add(5 * time.Second)
		store.Record(topic(orders), sample)
	}
}

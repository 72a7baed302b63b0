// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// fleet is a large number of topics of one pattern, each with one message a second that is delivered at once. They are
// polled every 10 s, spread over that time, and listed every 30 s.
type fleet struct {
	store        *backlog.Store
	subscription backlog.Subscription
	topics       []*fleetTopic
	listed       int
}

type fleetTopic struct {
	name string
	// loaded is when its counters began, and polled when it was first answered; in seconds.
	loaded, polled int
	// unloads is the interval between unloads in seconds; 0 for never.
	unloads int
}

const fleetPoll, fleetListing = 10, 30

func newFleet(t *testing.T, topics, unloads int) *fleet {
	t.Helper()
	f := &fleet{store: newStore(t), subscription: matching(t, "in-.*")}
	for i := range topics {
		f.add(-3600, unloads)
		if unloads > 0 {
			f.topics[i].loaded -= i * unloads / topics
		}
	}
	f.store.Track("me", f.subscription)
	return f
}

func (f *fleet) add(at, unloads int) {
	f.topics = append(f.topics, &fleetTopic{
		name:   fmt.Sprintf("persistent://public/default/in-%05d", len(f.topics)),
		loaded: at, polled: -1, unloads: unloads,
	})
}

// poll polls the topics that are due at the second.
func (f *fleet) poll(at int) {
	if at%fleetListing == 0 {
		var names []string
		for _, one := range f.topics {
			names = append(names, one.name)
		}
		backlog.List(f.store, namespace(), names, second(at))
		f.listed = len(names)
	}
	for i, one := range f.topics[:f.listed] {
		if one.unloads > 0 && at-one.loaded >= one.unloads {
			one.loaded = at - 1
		}
		if one.polled < 0 {
			one.polled = at
		} else if at%fleetPoll != i%fleetPoll {
			continue
		}
		count := int64(at - one.loaded)
		sample := partitioned(at, backlog.Full, part{published: count, delivered: count, consumers: []string{"a"}})
		sample.Partitions[0].Index = backlog.NotPartitioned
		f.store.Record(topic(one.name), sample)
	}
}

func TestRatesAreKnownWhileTopicsComeAndAreUnloaded(t *testing.T) {
	tests := map[string]struct {
		topics, unloads int
		adds            int // seconds between new topics
		seconds, reads  int // duration, and seconds between readings
	}{
		"a new topic every 30 s":                       {topics: 1000, adds: 30, seconds: 300, reads: 3},
		"each of 1,000 topics unloaded every 6 h":      {topics: 1000, unloads: 6 * 3600, seconds: 300, reads: 5},
		"each of 10,000 topics unloaded once a day":    {topics: 10_000, unloads: 24 * 3600, seconds: 100, reads: 13},
		"few topics, one of them unloaded each minute": {topics: 5, unloads: 300, seconds: 1800, reads: 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, test.topics, test.unloads)
			reads, unknown := 0, 0
			for at := range test.seconds {
				if test.adds > 0 && at%test.adds == test.adds/2 {
					f.add(at, 0)
				}
				f.poll(at)
				if at < 3*fleetPoll || at%test.reads != 0 {
					continue
				}
				reads++
				r, err := f.store.Read(f.subscription, second(at))
				require.NoError(t, err)
				for _, rate := range []backlog.Measurement{r.PublishRate, r.LatestPublishRate, r.DeliveryRate, r.ProcessRate} {
					value, err := rate.Value()
					if err != nil {
						unknown++
						continue
					}
					require.InEpsilon(t, f.listed, value, 0.02, "at %d s", at)
				}
			}
			require.Less(t, float64(unknown), 0.01*4*float64(reads))
		})
	}
}

func TestANewTopicWithManyMessagesLeavesALowerBound(t *testing.T) {
	f := newFleet(t, 4, 0)
	for at := range 30 {
		f.poll(at)
	}
	f.add(-100_000, 0) // it matches since now, and has been there for long
	f.poll(30)
	r, err := f.store.Read(f.subscription, second(30))
	require.NoError(t, err)
	require.True(t, r.Coverage.Complete())
	unknown(t, backlog.ErrNoRate, r.PublishRate, r.ProcessRate)
	rate, err := r.PublishRate.LowerBound()
	require.NoError(t, err)
	require.InDelta(t, 4, rate, 1e-9)
	for at := 31; at < 42; at++ {
		f.poll(at)
	}
	r, err = f.store.Read(f.subscription, second(41))
	require.NoError(t, err)
	require.InDelta(t, 5, known(t, r.PublishRate), 1e-9)
}

func TestANewTopicWithoutMessagesIsQuiet(t *testing.T) {
	f := newFleet(t, 4, 0)
	for at := range 30 {
		f.poll(at)
	}
	f.add(30, 0)
	f.poll(30)
	r, err := f.store.Read(f.subscription, second(30))
	require.NoError(t, err)
	for _, rate := range []backlog.Measurement{r.PublishRate, r.LatestPublishRate, r.DeliveryRate, r.ProcessRate} {
		require.InDelta(t, 4, known(t, rate), 1e-9)
	}
}

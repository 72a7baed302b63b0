// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNextRequestHasWhatDecisionsNeed(t *testing.T) {
	const name = "public/default/resize"
	one := func(at int, detail Detail, subscription SubscriptionSample) TopicSample {
		subscription.Name = name
		return TopicSample{At: midday().Add(time.Duration(at) * time.Second), Detail: detail, Partitions: []PartitionSample{
			{Index: NotPartitioned, Subscriptions: []SubscriptionSample{subscription}},
		}}
	}
	nothing := func(at int, detail Detail) TopicSample {
		return TopicSample{
			At: midday().Add(time.Duration(at) * time.Second), Detail: detail,
			Partitions: []PartitionSample{{Index: NotPartitioned}},
		}
	}
	waits := func(entries, delivered int64) SubscriptionSample {
		return SubscriptionSample{BacklogEntries: entries, DeliveredMessages: delivered}
	}
	blocked := waits(500, 7)
	blocked.Blocked = true
	busy := func(sample TopicSample, published int64) TopicSample {
		sample.Partitions[0].PublishedMessages = published
		return sample
	}
	tests := map[string]struct {
		answers []TopicSample
		failure error
		bytes   bool
		after   int // seconds since midday
		want    Detail
	}{
		"everything but the costly of a topic that was never read": {want: Full | Precise},
		"nothing for an idle topic": {
			answers: []TopicSample{busy(one(0, Full, waits(0, 0)), 5)},
			after:   10, want: Slim,
		},
		"an exact count of one without messages since it was loaded": {
			answers: []TopicSample{one(0, Full, waits(0, 0))},
			after:   10, want: Precise,
		},
		"consumers of a subscription that has just appeared": {
			answers: []TopicSample{nothing(0, Full), busy(one(10, Slim, waits(0, 0)), 5)}, after: 20, want: Consumers,
		},
		"consumers while they hold skipped messages": {
			answers: []TopicSample{busy(one(0, Full, SubscriptionSample{UnackedMessages: 100}), 5)}, after: 1, want: Consumers,
		},
		"nothing for a missing subscription": {answers: []TopicSample{nothing(0, Full)}, after: 10, want: Slim},
		"an exact count after a window without publishing": {
			answers: []TopicSample{one(0, Full, waits(0, 0)), one(10, Slim, waits(0, 0))}, after: 20, want: Precise,
		},
		"not again while that holds": {
			answers: []TopicSample{
				one(0, Full, waits(0, 0)), one(10, Slim, waits(0, 0)), one(20, Precise, waits(0, 0)),
				one(30, Slim, waits(0, 0)),
			}, after: 40, want: Slim,
		},
		"again after something was published": {
			answers: []TopicSample{
				one(0, Full, waits(0, 0)), one(10, Slim, waits(0, 0)), one(20, Precise, waits(0, 0)),
				busy(one(30, Slim, waits(0, 0)), 5), busy(one(40, Slim, waits(0, 0)), 5),
			}, after: 50, want: Precise,
		},
		"not while messages are published": {
			answers: []TopicSample{one(0, Full, waits(0, 0)), busy(one(10, Slim, waits(0, 0)), 5)}, after: 20, want: Slim,
		},
		"consumers of an idle one once a minute": {
			answers: []TopicSample{busy(one(0, Full, waits(0, 0)), 5)}, after: 60,
			want: Consumers,
		},
		"bytes whenever a subscription requests them": {
			answers: []TopicSample{busy(one(0, Full, waits(0, 0)), 5)}, bytes: true,
			after: 10, want: Bytes,
		},
		"the age when a backlog begins": {
			answers: []TopicSample{one(0, Full, waits(500, 0))}, after: 1,
			want: Consumers | Age,
		},
		"not the age again within half a minute": {
			answers: []TopicSample{one(0, Full, waits(500, 0)), one(10, Full|Age, waits(500, 1))}, after: 39, want: Consumers,
		},
		"the age again after half a minute": {
			answers: []TopicSample{
				one(0, Full, waits(500, 0)),
				one(10, Full|Age, waits(500, 1)),
			}, after: 40, want: Consumers | Age,
		},
		"not the age at once when it was requested in vain": {
			answers: []TopicSample{one(0, Full, waits(500, 0)), one(10, Full, waits(500, 1))}, after: 39, want: Consumers,
		},
		"not the age while fetches fail, for it may be why": {
			answers: []TopicSample{
				one(0, Full, waits(500, 0)),
				one(10, Full, waits(500, 1)),
			}, failure: ErrUnavailable, after: 50, want: Consumers,
		},
		"an exact count near zero": {
			answers: []TopicSample{one(0, Full, waits(nearZero, 0))}, after: 1,
			want: Consumers | Precise | Age,
		},
		"an exact count again after one that was empty or near zero": {
			answers: []TopicSample{one(0, Full, waits(3, 0)), one(10, Full|Precise, waits(0, 0))}, after: 20, want: Precise,
		},
		"an exact count for a backlog without deliveries": {
			answers: []TopicSample{
				one(0, Full, waits(500, 7)),
				one(10, Full|Age, waits(500, 7)),
			}, after: 20, want: Consumers | Precise,
		},
		"no exact count while deliveries go on": {
			answers: []TopicSample{one(0, Full, waits(500, 7)), one(10, Full|Age, waits(500, 8))}, after: 20, want: Consumers,
		},
		"no exact count of a blocked subscription": {
			answers: []TopicSample{one(0, Full, blocked), one(10, Full|Age, blocked)}, after: 20, want: Consumers,
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			store, err := NewStore(10*time.Second, time.Minute, Bounds{})
			require.NoError(t, err)
			subscription := NewSubscription(Cluster{}, name, "orders")
			subscription.Bytes = test.bytes
			store.Track("me", subscription)
			topic := Topic{Name: "persistent://public/default/orders"}
			for _, answer := range test.answers {
				(*Feed)(store).NextRequest(topic, answer.At)
				store.Record(topic, answer)
			}
			if test.failure != nil {
				store.Fail(topic, test.failure)
			}
			at := midday().Add(time.Duration(test.after) * time.Second)
			require.Equal(t, test.want, (*Feed)(store).NextRequest(topic, at).Detail)
		})
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Two answers about a topic, 10 s apart, give the backlog and the rate at which messages were published.
func ExampleStore_Read() {
	store, err := backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
	if err != nil {
		panic(err)
	}
	cluster := backlog.Cluster{AdminURL: "http://pulsar:8080"}
	subscription := backlog.NewSubscription(cluster, "resize", "persistent://media/images/new")
	store.Track("policy media/resize", subscription)
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

	_, err = store.Read(subscription, noon)
	fmt.Println("nothing yet:", errors.Is(err, backlog.ErrNoData))

	for i := range int64(2) {
		store.Record(backlog.Topic{Cluster: cluster, Name: "persistent://media/images/new"}, backlog.TopicSample{
			At: noon.Add(time.Duration(i) * 10 * time.Second),
			Partitions: []backlog.PartitionSample{{
				Index:             backlog.NotPartitioned,
				PublishedMessages: 1000 + 4120*i,
				Subscriptions: []backlog.SubscriptionSample{{
					Name: "resize", Type: backlog.Shared, BacklogEntries: 300 + 3000*i,
				}},
			}},
		})
	}
	reading, err := store.Read(subscription, noon.Add(11*time.Second))
	if err != nil {
		panic(err)
	}
	rate, err := reading.PublishRate.Value()
	fmt.Println("published a second:", rate, err, "over", reading.Window)
	fmt.Println("measured at:", reading.At.Format(time.TimeOnly))

	_, err = store.Read(subscription, noon.Add(2*time.Minute))
	fmt.Println("two minutes later:", errors.Is(err, backlog.ErrStale))

	// Output:
	// nothing yet: true
	// published a second: 412 <nil> over 10s
	// measured at: 12:00:10
	// two minutes later: true
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// longestGap is the longest time between two fetches of the topic, from the given fetch on.
func (f *fakeSource) longestGap(t backlog.Topic, from int) (longest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := from + 1; i < len(f.fetches[t]); i++ {
		longest = max(longest, f.fetches[t][i].Sub(f.fetches[t][i-1]))
	}
	return longest
}

func TestATopicThatWokeUpIsReadAtTheUsualPaceUntilItWasQuietForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source, _, config := quietTopic(t)
		config.QuietInterval = 90 * time.Second // so that its own fetches fall between bulk answers
		setEntries := func(entries int64) {
			source.mu.Lock()
			defer source.mu.Unlock()
			source.backlog = entries
		}
		run(t, config, func(*poll.Poller) {
			store.Track("me", backlog.NewSubscription(cluster(), function, orders))
			for range 20 {
				time.Sleep(5*time.Minute + 7*time.Second)
				asleep := source.count(topic(orders))
				setEntries(5)
				for source.count(topic(orders)) == asleep {
					time.Sleep(time.Second)
				}
				time.Sleep(2 * time.Minute)
				setEntries(0)
				time.Sleep(85 * time.Second)
				require.LessOrEqual(t, source.longestGap(topic(orders), asleep), 11*time.Second)
			}
		})
	})
}

func TestBulkAnswersThatAreRareLetNoReadingBecomeStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, source, _, config := quietTopic(t)
		store, err := backlog.NewStore(rateWindow, 3*time.Minute)
		require.NoError(t, err)
		config.Store, config.BulkInterval, config.QuietInterval = store, 10*time.Minute, 10*time.Minute
		run(t, config, func(*poll.Poller) {
			subscription := backlog.NewSubscription(cluster(), function, orders)
			store.Track("me", subscription)
			time.Sleep(time.Second)
			for range 720 {
				time.Sleep(5 * time.Second)
				_, err := store.Read(subscription, time.Now())
				require.NoError(t, err)
			}
			require.Less(t, source.count(topic(orders)), 300, "and some of 360 fetches are spared")
		})
	})
}

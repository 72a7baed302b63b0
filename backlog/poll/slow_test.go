// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// slowSource answers requests with consumers, or all of them, later than the timeout.
type slowSource struct {
	all          bool
	full, others []time.Time
}

func (s *slowSource) Fetch(ctx context.Context, _ backlog.Topic, request backlog.Request) (backlog.TopicSample, error) {
	at := time.Now()
	if request.Detail.Has(backlog.Consumers) {
		s.full = append(s.full, at)
	} else {
		s.others = append(s.others, at)
	}
	if s.all || request.Detail.Has(backlog.Consumers) {
		<-ctx.Done()
		return backlog.TopicSample{}, fmt.Errorf("%w: %w", backlog.ErrUnreachable, ctx.Err())
	}
	return sampleOf(at, request.Detail, 500), nil
}

func (s *slowSource) AddEntries(_ context.Context, _ backlog.Topic, sample backlog.TopicSample) backlog.TopicSample {
	return sample
}

func TestPollerReadsATopicWithTooManyConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), &slowSource{}
		subscription := backlog.NewSubscription(cluster(), function, orders)
		polling(t, store, source, func(*poll.Poller) {
			store.Track("me", subscription)
			known := 0
			const seconds = 30 * 60
			for range seconds {
				time.Sleep(time.Second)
				r, err := store.Read(subscription, time.Now())
				if err != nil {
					continue
				}
				known++
				_, err = r.Ready.Value()
				require.NoError(t, err)
				_, err = r.Consumers.Value()
				require.ErrorIs(t, err, backlog.ErrNotRequested)
			}
			synctest.Wait()
			require.Greater(t, known, seconds-30, "seconds with a reading")
			require.InDelta(t, 6, len(source.full), 2, "requests with consumers")
			require.Greater(t, len(source.others), 170)
		})
	})
}

func TestPollerForgetsConsumersThatTakeTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), &slowSource{}
		subscription := backlog.NewSubscription(cluster(), function, orders)
		store.Track("me", subscription)
		store.Record(topic(orders), sampleOf(time.Now(), backlog.Full, 500))
		time.Sleep(time.Second)
		polling(t, store, source, func(*poll.Poller) {
			time.Sleep(time.Minute)
			r, err := store.Read(subscription, time.Now())
			require.NoError(t, err)
			require.InDelta(t, 0, known(t, r.Consumers), 0)
			require.False(t, r.SteadyConsumers, "more may have joined since")
			time.Sleep(2 * time.Minute)
			r, err = store.Read(subscription, time.Now())
			require.NoError(t, err)
			_, err = r.Consumers.Value()
			require.ErrorIs(t, err, backlog.ErrNotRequested)
			partitions, err := store.Partitions(subscription, time.Now())
			require.NoError(t, err)
			_, err = partitions[0].Consumers.Value()
			require.ErrorIs(t, err, backlog.ErrNotRequested)
		})
	})
}

func TestPollerRequestsConsumersAfterABrokerThatHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, source := newStore(t), &slowSource{all: true}
		polling(t, store, source, func(*poll.Poller) {
			store.Track("me", backlog.NewSubscription(cluster(), function, orders))
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			require.InDelta(t, len(source.others), len(source.full), 2, "both forms are equal")
		})
	})
}

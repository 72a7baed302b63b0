// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// priceLimit is the limit of all answers together, of the 512 MiB of a program.
	priceLimit = 200 << 20
	tracked    = "public/default/resize"
	counters   = `"type":"Shared","msgBacklog":7,"msgOutCounter":0,"msgDelayed":0,"unackedMessages":0`
)

// requestTracked is a poller's request for a topic with one tracked subscription.
func requestTracked() backlog.Request {
	return backlog.Request{Detail: backlog.Consumers, Subscriptions: []string{tracked}}
}

// withConsumers is a topic with a tracked subscription of n consumers.
func withConsumers(count int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"msgInCounter":1,"subscriptions":{%q:{%s,"consumers":[`, tracked, counters)
	for i := range count {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"consumerName":"c%07d"}`, i)
	}
	b.WriteString("]}}}")
	return b.Bytes()
}

// withSubscriptions is a topic with a tracked subscription among many others.
func withSubscriptions(count int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"msgInCounter":1,"subscriptions":{%q:{%s,"consumers":[{"consumerName":"one"}]}`, tracked, counters)
	for i := range count {
		fmt.Fprintf(&b, `,"s%07d":{}`, i)
	}
	b.WriteString("}}")
	return b.Bytes()
}

// withNames is a topic with many partitions, with a consumer of a long name on each.
func withNames(count, length int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"metadata":{"partitions":%d},"partitions":{`, count)
	for i := range count {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"persistent://public/default/orders-partition-%d":{"msgInCounter":1,"subscriptions":{%q:{%s,"consumers":`+
			`[{"consumerName":"%d%s"}]}}}`, i, tracked, counters, i, strings.Repeat("x", length))
	}
	b.WriteString("}}")
	return b.Bytes()
}

// peak is the maximum heap while run ran, above the heap before.
func peak(run func()) uint64 {
	inUse := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapInuse
	}
	debug.FreeOSMemory()
	before := inUse()
	most := before
	done := make(chan struct{})
	var group errgroup.Group
	group.Go(func() error {
		for {
			most = max(most, inUse())
			select {
			case <-done:
				return nil
			case <-time.After(2 * time.Millisecond):
			}
		}
	})
	run()
	close(done)
	_ = group.Wait()
	return most - before
}

func TestManyHugeAnswersAtOnceTakeLittleMemory(t *testing.T) {
	tests := map[string]struct {
		body       []byte
		partitions string
		topics     int
		check      func(t *testing.T, sample backlog.TopicSample, err error)
	}{
		"consumers of a tracked subscription": {
			body: withConsumers(240_000), partitions: notPartitioned, topics: 20,
			check: func(t *testing.T, sample backlog.TopicSample, err error) {
				t.Helper()
				require.NoError(t, err)
				one := sample.Partitions[0].Subscriptions[0]
				require.Len(t, one.Consumers, maxConsumers)
				require.Equal(t, 240_000, len(one.Consumers)+one.MoreConsumers)
			},
		},
		"subscriptions that are not tracked": {
			body: withSubscriptions(249_000), partitions: notPartitioned, topics: 16,
			check: func(t *testing.T, sample backlog.TopicSample, err error) {
				t.Helper()
				require.NoError(t, err)
				require.Len(t, sample.Partitions[0].Subscriptions, 1)
				require.Equal(t, int64(7), sample.Partitions[0].Subscriptions[0].BacklogEntries)
			},
		},
		"long names of consumers": {
			body: withNames(600, 60_000), partitions: `{"partitions":600}`, topics: 3,
			check: func(t *testing.T, _ backlog.TopicSample, err error) {
				t.Helper()
				require.ErrorIs(t, err, backlog.ErrProtocol)
				require.ErrorContains(t, err, "than may be kept of one answer (32 MiB)")
				require.ErrorContains(t, err, "persistent://public/default/orders")
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			source := newSource(t, Config{MaxConnsPerHost: 20}, broker)
			source.client.requestTimeout = time.Hour // a busy machine may take long
			stats := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(tt.body)
			}
			topic := func(i int) string { return "orders" + strconv.Itoa(i) }
			if tt.partitions != notPartitioned {
				topic = func(int) string { return "orders" }
			}
			for i := range tt.topics {
				broker.on(topic(i)+"/partitions", answers(tt.partitions))
				broker.on(topic(i)+"/stats", stats)
				broker.on(topic(i)+"/partitioned-stats", stats)
			}
			samples, errs := make([]backlog.TopicSample, tt.topics), make([]error, tt.topics)
			used := peak(func() {
				var group errgroup.Group
				for i := range tt.topics {
					group.Go(func() error {
						samples[i], errs[i] = source.Fetch(t.Context(), broker.topic(topic(i)), requestTracked())
						return nil
					})
				}
				_ = group.Wait()
			})
			for i := range tt.topics {
				tt.check(t, samples[i], errs[i])
			}
			require.Less(t, used, uint64(priceLimit))
			require.Empty(t, source.client.budget, "a place is kept for good")
		})
	}
}

func TestALargeAnswerWaitsForItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := newNetwork(t)
		broker := way.broker("broker:8080")
		broker.on("orders/partitions", answers(`{"partitions":8}`))
		broker.on("orders/partitioned-stats", answers(string(withNames(8, 60_000))))
		source := way.source(Config{RequestTimeout: 3 * time.Second})
		var others []*answer
		for range largeAnswers {
			other := &answer{ctx: t.Context(), budget: source.client.budget, decoding: new(atomic.Int64)}
			require.NoError(t, other.keep(smallAnswer+1))
			others = append(others, other)
		}
		fetch := func() error {
			_, err := source.Fetch(t.Context(), broker.topic("orders"), requestTracked())
			return err
		}

		err := fetch()
		require.EqualError(t, err, "unavailable: broker:8080 for persistent://public/default/orders: its answer is large, and "+
			"2 others were being read until the time was over: retried soon")
		require.ErrorIs(t, err, backlog.ErrUnavailable)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the broker was not slow")
		for range failuresToOpen {
			require.NotContains(t, fetch().Error(), "tries it again", "the host is not to blame")
		}

		time.AfterFunc(time.Second, others[0].release)
		require.NoError(t, fetch())
		require.Len(t, source.client.budget, largeAnswers-1, "it gave its place back")
		requireIdle(t, source.client.chain)
	})
}

func TestASmallAnswerNeedsNoPlace(t *testing.T) {
	full := newBudget()
	for range largeAnswers {
		full <- struct{}{}
	}
	small := &answer{ctx: t.Context(), budget: full, decoding: new(atomic.Int64)}
	require.NoError(t, small.keep(smallAnswer))
	small.release()
	require.Len(t, full, largeAnswers)
}

func TestWhatIsDecodedWholeIsChargedWhole(t *testing.T) {
	body := `{"reason":"` + strings.Repeat("x", largestAnswer/wholeJSON) + `"}`
	var into struct{ Reason string }
	charged := &answer{Reader: strings.NewReader(body), ctx: t.Context(), budget: newBudget(), decoding: new(atomic.Int64)}
	require.ErrorIs(t, decodeJSON(charged, &into), errKeepsTooMuch)
	require.Positive(t, charged.decoding.Load())
	charged.release()
	require.Empty(t, charged.budget)
	require.Zero(t, charged.decoding.Load())
}

func TestConsumersOfAWholeAnswerAreBounded(t *testing.T) {
	var b bytes.Buffer
	const partitions = 2 * maxAnswerConsumers / maxConsumers
	one := withConsumers(maxConsumers)
	fmt.Fprintf(&b, `{"metadata":{"partitions":%d},"partitions":{`, partitions)
	for i := range partitions {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"a-partition-%d":%s`, i, one)
	}
	b.WriteString("}}")
	sample, err := decodePartitionedStats(&b, "a", 0, requestTracked())
	require.NoError(t, err)
	kept := 0
	for _, p := range sample.Partitions {
		kept += len(p.Subscriptions[0].Consumers)
		require.Equal(t, maxConsumers, len(p.Subscriptions[0].Consumers)+p.Subscriptions[0].MoreConsumers)
	}
	require.Equal(t, maxAnswerConsumers, kept)
}

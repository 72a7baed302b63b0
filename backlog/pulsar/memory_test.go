// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// bodyBytes is the size that a user saw with 3,000 producers on a topic (apache/pulsar#21200).
const bodyBytes = 400 << 20

// endless is a body of a head and then one repeated piece.
type endless struct {
	head, piece string
	at          int
	started     bool
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		text := e.piece
		if !e.started {
			text = e.head
		}
		copied := copy(p[n:], text[e.at:])
		n += copied
		if e.at += copied; e.at == len(text) {
			e.at, e.started = 0, true
		}
	}
	return n, nil
}

// sendsMuch sends bodyBytes of it, or as much as the client reads.
func sendsMuch(how string, body endless) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		all := body // from the start
		w.Header().Set("Content-Type", "application/json")
		content := io.LimitReader(&all, bodyBytes)
		switch how {
		case "with its length":
			w.Header().Set("Content-Length", strconv.Itoa(bodyBytes))
			_, _ = io.CopyBuffer(struct{ io.Writer }{w}, content, make([]byte, 64<<10))
		case "gzip":
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			_, _ = io.CopyBuffer(struct{ io.Writer }{zip}, content, make([]byte, 64<<10))
			_ = zip.Close()
		default:
			if how == "500" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = io.CopyBuffer(struct{ io.Writer }{w}, content, make([]byte, 64<<10))
		}
	}
}

// TestHugeAnswersTakeLittleMemory counts all allocations, which exceed the memory in use.
func TestHugeAnswersTakeLittleMemory(t *testing.T) {
	var consumer bytes.Buffer
	var topic map[string]any
	require.NoError(t, json.Unmarshal(fixture(t, "4.0.8-topic-stats-function-p2.json"), &topic))
	require.NoError(t,
		json.NewEncoder(&consumer).Encode(
			topic["subscriptions"].(map[string]any)["public/default/sf2"].(map[string]any)["consumers"].([]any)[0]))
	const (
		consumers = `{"subscriptions":{"public/default/sf2":{"consumers":[`
		tooLong   = "bytes for persistent://public/default/orders: remove unused subscriptions"
		some      = 8 << 20
		longToken = "a string, a number or a run of blanks is longer than 131072 bytes"
	)
	oneString := endless{head: `{"ownerBroker":"`, piece: strings.Repeat("x", 1000)}
	realConsumers := endless{head: consumers + consumer.String(), piece: "," + consumer.String()}
	tests := map[string]struct {
		body endless
		how  string
		// limit is maxAnswerBytes; 0 for the usual 64 MiB.
		limit int64
		text  string
		most  uint64
	}{
		"real consumers, with their length": {
			body: realConsumers, how: "with its length", text: tooLong,
			most: 64 << 20,
		},
		"real consumers, without a length": {
			body: realConsumers, how: "chunked", limit: some, text: tooLong,
			most: some,
		},
		"a bomb of one string":     {body: oneString, how: "gzip", limit: some, text: longToken, most: some},
		"a bomb of real consumers": {body: realConsumers, how: "gzip", limit: some, text: tooLong, most: some},
		"consumers without content": {
			body:  endless{head: consumers + "{}", piece: ",{}"},
			limit: some, text: tooLong, most: some,
		},
		"publishers, which are not needed": {body: endless{
			head:  `{"publishers":[` + consumer.String(),
			piece: "," + consumer.String(),
		}, limit: some, text: tooLong, most: some / 4},
		"one string": {body: oneString, limit: some, text: longToken, most: some / 4},
		"one name of a subscription": {body: endless{
			head:  `{"subscriptions":{"`,
			piece: strings.Repeat("x", 1000),
		}, text: longToken, most: some},
		"one number": {
			body: endless{head: `{"msgInCounter":1`, piece: strings.Repeat("1", 1000)},
			text: longToken, most: some,
		},
		"one number that is not needed": {
			body:  endless{head: `{"msgRateIn":1`, piece: strings.Repeat("1", 1000)},
			limit: some, text: longToken, most: some / 4,
		},
		"blanks": {
			body: endless{head: ` `, piece: strings.Repeat(" ", 1000)}, limit: some,
			text: longToken, most: some / 4,
		},
		"lists of lists": {
			body: endless{head: `{"a":`, piece: "[[[["},
			text: "exceeded max depth", most: some,
		},
		"a stack trace, of which little is read": {
			body: endless{head: "{", piece: "\tat org.apache.pulsar\n"}, how: "500",
			text: "answered 500", most: some,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(notPartitioned))
			broker.on("orders/stats", sendsMuch(tt.how, tt.body), answers(goodTopic))
			source := newSource(t, Config{RequestTimeout: time.Minute}, broker)
			source.client.maxAnswerBytes = cmp.Or(tt.limit, maxAnswerBytes)
			before := allocated()
			_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Full})
			grown := allocated() - before
			require.ErrorContains(t, err, tt.text)
			require.True(t, errors.Is(err, backlog.ErrProtocol) || tt.how == "500")
			require.Less(t, grown, tt.most)
			_, err = source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.NoError(t, err, "the next call is good again")
		})
	}
}

// TestATopicIsReadBesideALongName: any client may give its consumer one.
func TestATopicIsReadBesideALongName(t *testing.T) {
	for name, tt := range map[string]struct{ one, other int }{
		"of another subscription": {5, 400 << 10}, "of the tracked one": {100 << 10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(notPartitioned))
			broker.on("orders/stats", func(w http.ResponseWriter, r *http.Request) {
				consumer := func(size int) string {
					if r.FormValue("excludeConsumers") == "true" {
						return ""
					}
					return fmt.Sprintf(`,"consumers":[{"consumerName":%q}]`, strings.Repeat("x", size))
				}
				answers(fmt.Sprintf(`{"msgInCounter":1,"subscriptions":{%q:{%s%s},"other":{%s%s}}}`, tracked, counters,
					consumer(tt.one), counters, consumer(tt.other)))(w, r)
			})
			broker.on("orders/internalStats", answers(`{"entriesAddedCounter":1}`))
			source, topic := newSource(t, Config{}, broker), broker.topic("orders")
			store, err := backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
			require.NoError(t, err)
			store.Track("me", backlog.NewSubscription(topic.Cluster, tracked, "orders"))
			now, feed := time.Now(), store.Feed(false)
			_, err = source.Fetch(t.Context(), topic, feed.NextRequest(topic, now))
			require.ErrorIs(t, err, backlog.ErrProtocol)
			store.Fail(topic, err)
			for range 3 {
				now = now.Add(10 * time.Second)
				sample, err := source.Fetch(t.Context(), topic, feed.NextRequest(topic, now))
				require.NoError(t, err)
				require.Equal(t, int64(7), sample.Partitions[0].Subscriptions[0].BacklogEntries)
				sample.At = now
				store.Record(topic, sample)
			}
		})
	}
}

func TestHugeListsTakeLittleMemory(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on(topicsPath,
		sendsMuch("chunked", endless{head: `["persistent://public/default/a"`, piece: `,"persistent://public/default/a"`}))
	source := newSource(t, Config{RequestTimeout: time.Minute}, broker)
	source.client.maxAnswerBytes = 8 << 20
	before := allocated()
	_, err := list(t, source, broker.namespace("public/default"))
	require.ErrorIs(t, err, backlog.ErrProtocol)
	require.Less(t, allocated()-before, uint64(2<<20))
}

// allocated is the total of all allocations, including the fake broker's.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

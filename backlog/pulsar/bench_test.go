// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// stretched builds an answer from the recorded topic of a function with the given consumers on each of the partitions;
// none means a topic that is not partitioned.
func stretched(b testing.TB, partitions, consumers int) []byte {
	b.Helper()
	var topic map[string]any
	require.NoError(b, json.Unmarshal(fixture(b, "4.0.8-topic-stats-function-p2.json"), &topic))
	for _, raw := range topic["subscriptions"].(map[string]any) {
		s := raw.(map[string]any)
		recorded := s["consumers"].([]any)
		all := make([]any, 0, consumers)
		for i := range consumers {
			all = append(all, recorded[i%len(recorded)])
		}
		s["consumers"] = all
	}
	answer := topic
	if partitions > 0 {
		all := map[string]any{}
		for i := range partitions {
			all[fmt.Sprintf("persistent://public/default/dp-partition-%d", i)] = topic
		}
		answer = maps.Clone(topic) // the sums over all partitions, which the decoder has to pass over
		answer["metadata"], answer["partitions"] = map[string]any{"partitions": partitions}, all
	}
	content, err := json.MarshalIndent(answer, "", " ")
	require.NoError(b, err)
	return content
}

func BenchmarkDecodeStats(b *testing.B) {
	for _, partitions := range []int{0, 1, 16} {
		for name, shape := range map[string]struct {
			detail    backlog.Detail
			consumers int
		}{"slim": {backlog.Slim, 0}, "full/consumers=1": {backlog.Full, 1}, "full/consumers=20": {backlog.Full, 20}} {
			b.Run(fmt.Sprintf("partitions=%d/%s", partitions, name), func(b *testing.B) {
				content := stretched(b, partitions, shape.consumers)
				b.SetBytes(int64(len(content)))
				b.ReportAllocs()
				for b.Loop() {
					var answer backlog.TopicSample
					var err error
					if partitions == 0 {
						answer, err = decodeStats(bytes.NewReader(content), backlog.Request{Detail: shape.detail})
					} else {
						answer, err = decodePartitionedStats(bytes.NewReader(content), "persistent://public/default/dp", partitions,
							backlog.Request{Detail: shape.detail})
					}
					if err != nil || len(answer.Partitions) != max(1, partitions) {
						b.Fatal(len(answer.Partitions), err)
					}
				}
			})
		}
	}
}

func BenchmarkDecodeTopics(b *testing.B) {
	var content bytes.Buffer
	content.WriteString("[")
	for i := range 100_000 {
		if i > 0 {
			content.WriteString(",")
		}
		fmt.Fprintf(&content, "%q", fmt.Sprintf("persistent://public/default/orders-%d-partition-%d", i/4, i%4))
	}
	content.WriteString("]")
	b.SetBytes(int64(content.Len()))
	b.ReportAllocs()
	for b.Loop() {
		topics := 0
		err := decodeTopics(bytes.NewReader(content.Bytes()), "public/default", func(string) { topics++ })
		if err != nil || topics != 25_000 {
			b.Fatal(topics, err)
		}
	}
}

// kedaStats is what KEDA's pulsar scaler decodes, by the fields that take time (pkg/scalers/pulsar_scaler.go, read at
// 00efa84).
type kedaStats struct {
	MsgRateIn       float64 `json:"msgRateIn"`
	MsgThroughputIn float64 `json:"msgThroughputIn"`
	BytesInCounter  int     `json:"bytesInCounter"`
	MsgInCounter    int     `json:"msgInCounter"`
	Publishers      []any   `json:"publishers"`
	Subscriptions   map[string]struct {
		MsgRateOut float64 `json:"msgRateOut"`
		MsgBacklog int64   `json:"msgBacklog"`
		Type       string  `json:"type"`
		Consumers  []any   `json:"consumers"`
	} `json:"subscriptions"`
}

// BenchmarkPolls reads ten topics of 4 partitions once. KEDA requests each whole. We request whole the one with a
// backlog, and the others without the 2 consumers of each partition.
func BenchmarkPolls(b *testing.B) {
	const topics, partitions = 10, 4
	whole, slim := stretched(b, partitions, 2), stretched(b, partitions, 0)
	sent := func(b *testing.B, answers ...[]byte) {
		b.Helper()
		total := 0
		for _, answer := range answers {
			var packed bytes.Buffer
			writer := gzip.NewWriter(&packed)
			_, err := writer.Write(answer)
			require.NoError(b, errors.Join(err, writer.Close()))
			total += packed.Len()
		}
		b.ReportMetric(float64(total), "sent-bytes/op")
	}
	b.Run("ours", func(b *testing.B) {
		answers := append([][]byte{whole}, slices.Repeat([][]byte{slim}, topics-1)...)
		read := answer{ctx: b.Context(), budget: newBudget(), decoding: new(atomic.Int64), decoders: newDecoders()}
		b.ReportAllocs()
		for b.Loop() {
			for i, one := range answers {
				detail := backlog.Slim
				if i == 0 {
					detail = backlog.Full
				}
				read.Reader = bytes.NewReader(one)
				_, err := decodePartitionedStats(&read, "persistent://public/default/dp", partitions,
					backlog.Request{Detail: detail})
				if err != nil {
					b.Fatal(err)
				}
				read.release()
			}
		}
		sent(b, answers...)
	})
	b.Run("as KEDA", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for range topics {
				body, err := io.ReadAll(bytes.NewReader(whole))
				var answer kedaStats
				if err = errors.Join(err, json.Unmarshal(body, &answer)); err != nil || len(answer.Subscriptions) != 1 {
					b.Fatal(len(answer.Subscriptions), err)
				}
			}
		}
		sent(b, slices.Repeat([][]byte{whole}, topics)...)
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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
		found := newListing("public/default", func(string) { topics++ })
		if err := found.decode(bytes.NewReader(content.Bytes())); err != nil || topics != 25_000 {
			b.Fatal(topics, err)
		}
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// stretched builds an answer of 16 partitions from the recorded topic of a function with the given consumers each.
func stretched(b *testing.B, consumers int) []byte {
	b.Helper()
	const partitions = 16
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
	answer := map[string]any{}
	for name, value := range topic { // the sums over all partitions, which the decoder has to pass over
		answer[name] = value
	}
	all := map[string]any{}
	for i := range partitions {
		all[fmt.Sprintf("persistent://public/default/dp-partition-%d", i)] = topic
	}
	answer["metadata"], answer["partitions"] = map[string]any{"partitions": partitions}, all
	content, err := json.MarshalIndent(answer, "", " ")
	require.NoError(b, err)
	return content
}

func BenchmarkDecodePartitionedStats(b *testing.B) {
	for _, consumers := range []int{0, 1, 20} {
		b.Run(fmt.Sprintf("partitions=16/consumers=%d", consumers), func(b *testing.B) {
			content := stretched(b, consumers)
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				partitions, err := decodePartitionedStats(bytes.NewReader(content), "persistent://public/default/dp", 16)
				if err != nil || len(partitions) != 16 {
					b.Fatal(len(partitions), err)
				}
			}
		})
	}
}

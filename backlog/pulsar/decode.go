// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// The answers, as far as they are needed. Pointers tell a number that is missing from 0.
//
// Source: org.apache.pulsar.common.policies.data.stats, TopicStatsImpl, SubscriptionStatsImpl, ConsumerStatsImpl and
// PartitionedTopicStatsImpl; PersistentTopicInternalStats; PartitionedTopicMetadata.
type (
	topicAnswer struct {
		MsgInCounter  *int64                        `json:"msgInCounter"`
		Subscriptions map[string]subscriptionAnswer `json:"subscriptions"`
	}
	subscriptionAnswer struct {
		Type            string           `json:"type"`
		MsgBacklog      *int64           `json:"msgBacklog"`
		MsgOutCounter   *int64           `json:"msgOutCounter"`
		MsgDelayed      *int64           `json:"msgDelayed"`
		UnackedMessages *int64           `json:"unackedMessages"`
		Blocked         bool             `json:"blockedSubscriptionOnUnackedMsgs"`
		Consumers       []consumerAnswer `json:"consumers"`
	}
	consumerAnswer struct {
		Name                string `json:"consumerName"`
		AvgMessagesPerEntry int64  `json:"avgMessagesPerEntry"`
		Metadata            struct {
			ID         string `json:"id"`
			InstanceID string `json:"instance_id"`
		} `json:"metadata"`
	}
	metadataAnswer struct {
		Partitions *int `json:"partitions"`
	}
	partitionedAnswer struct {
		Metadata   metadataAnswer         `json:"metadata"`
		Partitions map[string]topicAnswer `json:"partitions"`
	}
	internalAnswer struct {
		EntriesAddedCounter *int64 `json:"entriesAddedCounter"`
	}
	partitionedInternalAnswer struct {
		Partitions map[string]internalAnswer `json:"partitions"`
	}
)

// decodeJSON reads exactly one value.
func decodeJSON(r io.Reader, into any) error {
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(into); err != nil {
		return plainJSONError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("more than one JSON value")
		}
		return plainJSONError(err)
	}
	return nil
}

// plainJSONError takes Go's type names out of the text.
func plainJSONError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s is a %s", kind.Field, kind.Value)
	}
	return err
}

// decodePartitions reads the answer of /partitions: 0 means that the topic is not partitioned.
func decodePartitions(r io.Reader) (int, error) {
	var answer metadataAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return 0, err
	}
	return answer.count()
}

func (m metadataAnswer) count() (int, error) {
	switch {
	case m.Partitions == nil:
		return 0, errors.New("the number of partitions is missing")
	case *m.Partitions < 0:
		return 0, fmt.Errorf("%d partitions", *m.Partitions)
	default:
		return *m.Partitions, nil
	}
}

// decodeStats reads the answer of /stats.
func decodeStats(r io.Reader) ([]backlog.PartitionSample, error) {
	var answer topicAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return nil, err
	}
	partition, err := answer.sample(backlog.NotPartitioned)
	if err != nil {
		return nil, err
	}
	return []backlog.PartitionSample{partition}, nil
}

// decodePartitionedStats reads the answer of /partitioned-stats about the named topic, which has known partitions as
// far as is known. All partitions that its metadata speaks of must be there: a broker leaves out silently those that
// did not answer, and when all are missing it gives one under the name of the topic itself.
func decodePartitionedStats(r io.Reader, name string, known int) ([]backlog.PartitionSample, error) {
	var answer partitionedAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return nil, err
	}
	count, err := answer.Metadata.count()
	if err != nil {
		return nil, err
	}
	if count < known {
		return nil, incomplete{text: fmt.Sprintf("%d partitions where %d were known", count, known), fewer: true}
	}
	samples := make([]backlog.PartitionSample, 0, len(answer.Partitions))
	for key, partition := range answer.Partitions {
		index, ok := partitionIndex(key, name)
		if !ok || index >= count {
			continue // counted as missing below
		}
		sample, err := partition.sample(index)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample)
	}
	if len(samples) != count || len(samples) != len(answer.Partitions) {
		return nil, incomplete{text: missing(samples, count)}
	}
	slices.SortFunc(samples, func(a, b backlog.PartitionSample) int { return a.Index - b.Index })
	return samples, nil
}

// partitionIndex accepts only the one spelling of each index, so that no index comes twice.
func partitionIndex(key, name string) (index int, ok bool) {
	digits, ok := strings.CutPrefix(key, name+"-partition-")
	if !ok {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && index >= 0 && strconv.Itoa(index) == digits
}

// missing names up to 5 partitions that are not there.
func missing(samples []backlog.PartitionSample, count int) string {
	const most = 5
	there := make(map[int]bool, len(samples))
	for _, sample := range samples {
		there[sample.Index] = true
	}
	var names []string
	for i := 0; i < count && len(names) < most; i++ {
		if !there[i] {
			names = append(names, strconv.Itoa(i))
		}
	}
	absent := count - len(samples)
	switch {
	case absent == 0:
		return "it names partitions that the topic should not have"
	case absent > most:
		names = append(names, "...")
	}
	return fmt.Sprintf("%d of %d partitions are missing (%s): a broker did not answer, or they were deleted (pulsar-admin topics create-missed-partitions)",
		absent, count, strings.Join(names, ", "))
}

// decodeAddedEntries reads the answer of /internalStats: entries written, by index of the partition.
func decodeAddedEntries(r io.Reader) (map[int]int64, error) {
	var answer internalAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return nil, err
	}
	added, err := counter(answer.EntriesAddedCounter, "entriesAddedCounter")
	if err != nil {
		return nil, err
	}
	return map[int]int64{backlog.NotPartitioned: added}, nil
}

// decodePartitionedAddedEntries reads the answer of /partitioned-internalStats. Partitions may be missing.
func decodePartitionedAddedEntries(r io.Reader, name string) (map[int]int64, error) {
	var answer partitionedInternalAnswer
	if err := decodeJSON(r, &answer); err != nil {
		return nil, err
	}
	if answer.Partitions == nil {
		return nil, errors.New("partitions is missing")
	}
	entries := make(map[int]int64, len(answer.Partitions))
	for key, partition := range answer.Partitions {
		index, ok := partitionIndex(key, name)
		if !ok {
			continue
		}
		if added, err := counter(partition.EntriesAddedCounter, "entriesAddedCounter"); err == nil {
			entries[index] = added
		}
	}
	return entries, nil
}

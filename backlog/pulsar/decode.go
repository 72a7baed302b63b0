// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// decodePartitions reads the answer of /partitions: 0 for a topic that is not partitioned.
func decodePartitions(r io.Reader) (int, error) {
	s := newScanner(r)
	partitions, err := field(s, "partitions", "the number of partitions")
	if err := s.finish(err); err != nil {
		return 0, err
	}
	return partitionCount(partitions)
}

func partitionCount(count number) (int, error) {
	switch {
	case !count.present:
		return 0, errors.New("the number of partitions is missing")
	case count.value < 0 || count.value > math.MaxInt32:
		return 0, fmt.Errorf("%d partitions", count.value)
	default:
		return int(count.value), nil
	}
}

// decodeStats reads the answer of /stats, except for the time. The sample's Detail is the requested detail that it has.
func decodeStats(r io.Reader, request backlog.Request) (backlog.TopicSample, error) {
	d := newStatsDecoder(r, request)
	defer release(d.scanner)
	partition, err := d.topic(backlog.NotPartitioned)
	if err := d.finish(err); err != nil {
		return backlog.TopicSample{}, err
	}
	return d.topicSample(partition), nil
}

// decodePartitionedStats reads the answer of /partitioned-stats about the named topic, with the last known number of
// partitions. A broker silently omits partitions that did not answer: the sample reports this, by the count in the
// topic's metadata. If all are missing the answer has one under the name of the topic itself, which is no sample.
func decodePartitionedStats(r io.Reader, name string, known int,
	request backlog.Request,
) (backlog.TopicSample, error) {
	d := newStatsDecoder(r, request)
	defer release(d.scanner)
	var samples []backlog.PartitionSample
	there := map[int]bool{}
	stray := false
	partitions, err := eachPartition(d.scanner, func(key []byte) error {
		index, ok := partitionIndex(string(key), name)
		if !ok || there[index] {
			stray = true
			return d.skip()
		}
		sample, err := d.topic(index)
		if err != nil {
			return err
		}
		there[index] = true
		samples = append(samples, sample)
		return nil
	})
	if err != nil {
		return backlog.TopicSample{}, err
	}
	count, err := partitionCount(partitions)
	if err != nil {
		return backlog.TopicSample{}, err
	}
	if count < known {
		return backlog.TopicSample{},
			incompleteError{text: fmt.Sprintf("%d partitions where %d were known", count, known), fewer: true}
	}
	absent, total := missing(there, count)
	lacks := fmt.Sprintf("%d of %d partitions are missing (%s): a broker did not answer, or they were deleted "+
		"(pulsar-admin topics create-missed-partitions)", total, count, absent)
	switch {
	case total == count && count > 0:
		return backlog.TopicSample{}, incompleteError{text: lacks}
	case len(samples) != count-total || stray && total == 0:
		return backlog.TopicSample{}, incompleteError{text: "it names partitions that the topic should not have"}
	}
	slices.SortFunc(samples, func(a, b backlog.PartitionSample) int { return a.Index - b.Index })
	sample := d.topicSample(samples...)
	if total > 0 {
		sample.Incomplete = backlog.Errorf(backlog.ErrPartial, "%s", lacks)
	}
	return sample, nil
}

// eachPartition reads an answer of the partitioned calls; read must consume the value of each partition. The sums over
// all partitions are skipped: they are not reliable.
func eachPartition(s *scanner, read func(key []byte) error) (partitions number, err error) {
	err = s.object(func(key []byte) (err error) {
		switch string(key) {
		case "metadata":
			if err := s.once("metadata"); err != nil {
				return err
			}
			partitions, err = field(s, "partitions", "the number of partitions")
			return err
		case "partitions":
			return s.object(read)
		default:
			return s.skip()
		}
	})
	return partitions, s.finish(err)
}

// partitionIndex accepts only the canonical form of each index, so that no index occurs twice.
func partitionIndex(key, name string) (index int, ok bool) {
	digits, ok := strings.CutPrefix(key, name+backlog.PartitionSuffix)
	if !ok {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && index >= 0 && strconv.Itoa(index) == digits
}

// missing counts the missing partitions, and names up to 5. The count comes from outside and may be huge, so there is
// no loop over it.
func missing(there map[int]bool, count int) (names string, total int) {
	const most = 5
	total = count
	for index := range there {
		if index < count {
			total--
		}
	}
	var first []string
	for i := 0; i < count && len(first) < min(total, most); i++ {
		if !there[i] {
			first = append(first, strconv.Itoa(i))
		}
	}
	if total > most {
		first = append(first, "...")
	}
	return strings.Join(first, ", "), total
}

// decodeAddedEntries reads the answer of /internalStats: entries written, by index of the partition.
func decodeAddedEntries(r io.Reader) (map[int]int64, error) {
	s := newScanner(r)
	added, err := field(s, "entriesAddedCounter", "entriesAddedCounter")
	if err := s.finish(err); err != nil {
		return nil, err
	}
	entries, err := added.counter("entriesAddedCounter")
	if err != nil {
		return nil, err
	}
	return map[int]int64{backlog.NotPartitioned: entries}, nil
}

// decodePartitionedAddedEntries reads the answer of /partitioned-internalStats. Partitions may be missing.
func decodePartitionedAddedEntries(r io.Reader, name string) (map[int]int64, error) {
	s := newScanner(r)
	entries := map[int]int64{}
	_, err := eachPartition(s, func(key []byte) error {
		index, ok := partitionIndex(string(key), name)
		added, err := field(s, "entriesAddedCounter", "entriesAddedCounter")
		if err != nil {
			return err
		}
		if count, err := added.counter("entriesAddedCounter"); err == nil && ok {
			entries[index] = count
		}
		return s.answer.keep(partitionCost)
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

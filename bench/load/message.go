// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	// property carries the stamp in addition to the payload, for a Function that forwards properties and changes the
	// payload.
	property = "pulsar-autoscaler.io/bench"
	// StampBytes is the head of a payload: sequence, due time and run of a message.
	StampBytes    = 24
	sequenceBytes = 8
)

// stamp identifies a message: its number within a run, from 1, and when it was due.
type stamp struct {
	run      string
	sequence uint64
	due      time.Time
}

// payload of a message; its first 24 bytes are the stamp.
func (s stamp) payload(size int) []byte {
	payload := make([]byte, size)
	binary.BigEndian.PutUint64(payload, s.sequence)
	binary.BigEndian.PutUint64(payload[8:], uint64(s.due.UnixNano()))
	binary.BigEndian.PutUint64(payload[16:], hashOf(s.run))
	return payload
}

// property is the stamp as text, run last.
func (s stamp) property() string {
	return fmt.Sprintf("%d/%d/%s", s.sequence, s.due.UnixNano(), s.run)
}

// readStamp returns the stamp of a message of the run; false for any other message.
func readStamp(properties map[string]string, payload []byte, run string) (stamp, bool) {
	if text, ok := properties[property]; ok {
		return parseStamp(text, run)
	}
	if len(payload) < StampBytes || binary.BigEndian.Uint64(payload[16:]) != hashOf(run) {
		return stamp{}, false
	}
	s := stamp{run: run, sequence: binary.BigEndian.Uint64(payload)}
	s.due = time.Unix(0, int64(binary.BigEndian.Uint64(payload[8:]))) //nolint:gosec // any bits are a time
	return s, s.isValid()
}

func parseStamp(text, run string) (stamp, bool) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) != 3 || parts[2] != run {
		return stamp{}, false
	}
	sequence, errSequence := strconv.ParseUint(parts[0], 10, 64)
	due, errDue := strconv.ParseInt(parts[1], 10, 64)
	s := stamp{run: run, sequence: sequence, due: time.Unix(0, due)}
	return s, errSequence == nil && errDue == nil && s.isValid()
}

func (s stamp) isValid() bool { return s.sequence >= 1 && s.sequence <= maxMessages }

func hashOf(run string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(run)) // a hash never fails
	return hash.Sum64()
}

// Sequence is the number of a message of a Publisher, from 1; false for another payload.
func Sequence(payload []byte) (uint64, bool) {
	if len(payload) < sequenceBytes {
		return 0, false
	}
	return binary.BigEndian.Uint64(payload), true
}

// keyOf returns a function for the key of a message: in turn, or with a skew by a seeded Zipf distribution.
func (k Keys) keyOf(seed uint64) func(sequence uint64) string {
	switch {
	case k.Count == 0:
		return func(uint64) string { return "" }
	case k.Skew == 0:
		count := uint64(k.Count) //nolint:gosec // validated
		return func(sequence uint64) string { return strconv.FormatUint(sequence%count, 10) }
	}
	random := rand.New(rand.NewPCG(seed, 1))
	cumulated := make([]float64, k.Count)
	sum := 0.0
	for rank := range cumulated {
		sum += math.Pow(float64(rank+1), -k.Skew)
		cumulated[rank] = sum
	}
	return func(uint64) string {
		return strconv.Itoa(min(k.Count-1, sort.SearchFloat64s(cumulated, random.Float64()*sum)))
	}
}

func (m Messages) producer(topic string) pulsar.ProducerOptions {
	options := pulsar.ProducerOptions{
		Topic:                   topic,
		DisableBatching:         m.Batching.MaxMessages == 1,
		BatchingMaxMessages:     uint(m.Batching.MaxMessages),
		BatchingMaxPublishDelay: m.Batching.MaxDelay.Duration,
		MaxPendingMessages:      m.pending(),
		SendTimeout:             -1, // after an outage the broker gets all messages
	}
	if m.Keys.Count > 0 {
		options.BatcherBuilderType = pulsar.KeyBasedBatchBuilder // Key_Shared dispatches whole batches
	}
	return options
}

// pending is how many messages may wait for the broker, bounded for the client's memory.
func (m Messages) pending() int { return min(pendingMax, max(1, pendingBytes/m.Bytes)) }

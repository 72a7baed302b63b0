// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
)

//go:embed testdata/partition.json
var partitionAnswer []byte

// subscription is the subscription of every topic of the broker.
const subscription = "public/default/resize"

// The counts of the recorded response.
const realMessages, realBytes = 20, 1005

// answers are the response bodies for one topic. Each is built once, compressed as a broker sends it to clients that
// accept gzip.
type answers struct{ full, slim, entries []byte }

// recipe builds answers: the state of one partition with and without its consumers, with and without a backlog.
type recipe struct {
	partitions int
	// states are JSON objects, indexed by waiting and then by full.
	states map[bool]map[bool][]byte
}

// newRecipe derives the states from the recorded response.
func newRecipe(partitions int) (*recipe, error) {
	r := &recipe{partitions: partitions, states: map[bool]map[bool][]byte{false: {}, true: {}}}
	for waiting := range r.states {
		for _, full := range []bool{false, true} {
			state, err := partitionState(waiting, full)
			if err != nil {
				return nil, fmt.Errorf("deriving a partition's state: %w", err)
			}
			r.states[waiting][full] = state
		}
	}
	return r, nil
}

func partitionState(waiting, full bool) ([]byte, error) {
	var state map[string]any
	if err := json.Unmarshal(partitionAnswer, &state); err != nil {
		return nil, err
	}
	subscriptions, ok := state["subscriptions"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("subscriptions is %T", state["subscriptions"])
	}
	one, ok := subscriptions[subscription].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("subscription %s is %T", subscription, subscriptions[subscription])
	}
	one["msgBacklog"], one["unackedMessages"] = 0, 0
	if waiting {
		one["msgBacklog"] = 500
	}
	if !full {
		one["consumers"] = []any{}
	}
	return json.Marshal(state)
}

// answer builds the bodies for a topic with all its partitions. To each, the given number of single messages was
// published and delivered since the recorded response.
func (r *recipe) answer(topic string, waiting bool, more int64) (answers, error) {
	var made answers
	var err error
	full, slim := moved(r.states[waiting][true], more), moved(r.states[waiting][false], more)
	for body, write := range map[*[]byte]func(*bytes.Buffer){
		&made.full:    func(b *bytes.Buffer) { r.stats(b, topic, full) },
		&made.slim:    func(b *bytes.Buffer) { r.stats(b, topic, slim) },
		&made.entries: func(b *bytes.Buffer) { r.entries(b, topic, more) },
	} {
		var plain bytes.Buffer
		write(&plain)
		if *body, err = compress(plain.Bytes()); err != nil {
			return answers{}, err
		}
	}
	return made, nil
}

// moved adds single messages to the counts.
func moved(state []byte, more int64) []byte {
	for field, count := range map[string]int64{
		"msgInCounter": realMessages, "msgOutCounter": realMessages,
		"bytesInCounter": realBytes,
	} {
		now := count + more*count/realMessages
		state = bytes.ReplaceAll(state, fmt.Appendf(nil, "%q:%d,", field, count), fmt.Appendf(nil, "%q:%d,", field, now))
	}
	return state
}

// stats writes partitioned-stats: the sums in the form of one partition, the partitions, and their number.
func (r *recipe) stats(b *bytes.Buffer, topic string, state []byte) {
	b.Write(state[:len(state)-1]) // without the closing brace
	b.WriteString(`,"metadata":{"partitions":` + strconv.Itoa(r.partitions) + `,"deleted":false},"partitions":{`)
	r.each(b, topic, state)
	b.WriteString("}}")
}

// entries writes the part of partitioned-internalStats that clients read.
func (r *recipe) entries(b *bytes.Buffer, topic string, more int64) {
	b.WriteString(`{"metadata":{"partitions":` + strconv.Itoa(r.partitions) + `,"deleted":false},"partitions":{`)
	r.each(b, topic,
		[]byte(`{"entriesAddedCounter":`+strconv.FormatInt(realMessages+more,
			10)+`,"numberOfEntries":20,"totalSize":1005,"state":"LedgerOpened","ledgers":[],"cursors":{}}`))
	b.WriteString("}}")
}

func (r *recipe) each(b *bytes.Buffer, topic string, state []byte) {
	for i := range r.partitions {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(topic + "-partition-" + strconv.Itoa(i)))
		b.WriteByte(':')
		b.Write(state)
	}
}

func compress(plain []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	if _, err := writer.Write(plain); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return packed.Bytes(), nil
}

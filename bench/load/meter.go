// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/sync/errgroup"
)

// forgivenSkew is the tolerated difference of clocks on one machine while they are set.
const forgivenSkew = 10 * time.Millisecond

// Metering configures a Meter. Topic and Objective are required.
type Metering struct {
	// Topic is the output of the Function, partitioned or not.
	Topic string
	// Run of the Publisher; other messages do not count.
	Run string
	// Objective separates good from late.
	Objective time.Duration
	// FromNow ignores messages that the topic has already.
	FromNow bool
}

// Meter measures messages end to end: from when each was due until the Function published its result. Results in a
// batch have the publish time of the first one, so their latencies are too short by up to the batching delay.
type Meter struct {
	*Tally

	config  Metering
	readers []pulsar.Reader
	skew    time.Duration // guarded by Tally.mu
}

// NewMeter reads the output without a durable subscription. It does not close the client.
func NewMeter(client pulsar.Client, config Metering) (*Meter, error) {
	switch {
	case config.Topic == "":
		return nil, errors.New("load.Metering.Topic is empty: it must name the output of the Function")
	case config.Objective <= 0:
		return nil, fmt.Errorf("load.Metering.Objective is %s: it must be above 0", config.Objective)
	}
	partitions, err := client.TopicPartitions(config.Topic)
	if err != nil {
		return nil, fmt.Errorf("reading the partitions of %s: %w", config.Topic, err)
	}
	begin := pulsar.EarliestMessageID()
	if config.FromNow {
		begin = pulsar.LatestMessageID()
	}
	m := &Meter{Tally: NewTally(config.Objective), config: config}
	for _, partition := range partitions {
		reader, err := client.CreateReader(pulsar.ReaderOptions{
			Topic: partition, StartMessageID: begin,
		})
		if err != nil {
			m.Close()
			return nil, fmt.Errorf("reading %s: %w", partition, err)
		}
		m.readers = append(m.readers, reader)
	}
	return m, nil
}

// Run measures until ctx ends, which is no error.
func (m *Meter) Run(ctx context.Context) error {
	group, reading := errgroup.WithContext(ctx)
	for _, reader := range m.readers {
		group.Go(func() error { return m.read(reading, reader) })
	}
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (m *Meter) read(ctx context.Context, reader pulsar.Reader) error {
	var last pulsar.MessageID
	for {
		message, err := reader.Next(ctx)
		if err != nil {
			return fmt.Errorf("reading %s: %w", reader.Topic(), err)
		}
		if last != nil && !follows(message.ID(), last) {
			continue // redelivered after a reconnect
		}
		last = message.ID()
		s, ok := readStamp(message.Properties(), message.Payload(), m.config.Run)
		if !ok {
			continue
		}
		if message.ID().BatchIdx() <= 0 { // the messages of a batch have the publish time of its first
			m.see(s.due, message.PublishTime(), time.Now())
		}
		m.Record(s.sequence, message.PublishTime().Sub(s.due))
	}
}

// follows reports whether a message is stored after another of the same topic.
func follows(id, other pulsar.MessageID) bool {
	if id.LedgerID() != other.LedgerID() {
		return id.LedgerID() > other.LedgerID()
	}
	if id.EntryID() != other.EntryID() {
		return id.EntryID() > other.EntryID()
	}
	return id.BatchIdx() > other.BatchIdx()
}

// see detects a wrong clock: results that were published before their message was due, or after they were received.
func (m *Meter) see(due, published, received time.Time) {
	ahead, behind := published.Sub(received), due.Sub(published)
	m.mu.Lock()
	defer m.mu.Unlock()
	if ahead > max(forgivenSkew, m.skew.Abs()) {
		m.skew = ahead
	}
	if behind > max(forgivenSkew, m.skew.Abs()) {
		m.skew = -behind
	}
}

// Skew is the known minimum difference between the clocks of the Function's host and ours; 0 if no message shows any.
// It is the error of the latencies, above 0 if the Function's clock is ahead.
func (m *Meter) Skew() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.skew
}

// Close closes the readers. It must not be called during Run.
func (m *Meter) Close() {
	for _, reader := range m.readers {
		reader.Close()
	}
}

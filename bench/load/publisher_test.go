// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// publish runs a load against the fake, and returns the publisher and a tally of when messages were stored.
func publish(t *testing.T, f *fakePulsar, shape string, messages Messages) (*Publisher, *Tally) {
	t.Helper()
	schedule, err := decode(t, shape).Schedule(nil)
	require.NoError(t, err)
	p, err := NewPublisher(f, Publishing{Topic: "t", Run: "r", Messages: messages})
	require.NoError(t, err)
	defer p.Close()
	f.begun = time.Now()
	require.NoError(t, p.Run(t.Context(), schedule.Arrivals()))
	require.EqualValues(t, schedule.Messages(schedule.End()), p.Published())
	require.Equal(t, p.Sent(), p.Published())
	tally := NewTally(time.Second)
	for i, one := range f.stored {
		s, ok := readStamp(one.message.Properties, one.message.Payload, "r")
		require.True(t, ok)
		require.EqualValues(t, i+1, s.sequence)
		tally.Record(s.sequence, one.at.Sub(s.due))
	}
	return p, tally
}

func TestPublisherPublishesWhenMessagesAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePulsar{perMessage: time.Microsecond}
		p, tally := publish(t, f, "{duration: 10s, constant: {rate: 500}}", Messages{})
		require.Less(t, tally.Latencies().Max, 2*time.Millisecond)
		require.Empty(t, p.Lag().Bottleneck(time.Second, 5000, p.Sent()))
		require.Equal(t, 10*time.Second+time.Millisecond, time.Since(f.begun).Round(time.Millisecond))
	})
}

// A closed loop would send nothing during the stall, and report one slow message.
func TestStallsCountForEveryMessageThatWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePulsar{perMessage: time.Microsecond, stillFrom: 2 * time.Second, stillUntil: 5 * time.Second}
		p, tally := publish(t, f, "{duration: 10s, constant: {rate: 500}}", Messages{})
		require.InDelta(t, 1000, tally.Counts().Late, 5, "due in the first 2 of the 3 s: longer than the objective of 1 s")
		require.InDelta(t, float64(3*time.Second), float64(tally.Latencies().Max), float64(10*time.Millisecond))
		require.Less(t, p.Lag().Late.Max, 2*time.Millisecond, "the publisher was not the cause")
	})
}

func TestPublisherSeparatesItsLagFromPulsars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePulsar{perMessage: time.Microsecond, stillFrom: time.Second, stillUntil: 4 * time.Second}
		p, tally := publish(t, f, "{duration: 5s, constant: {rate: 500}}", Messages{Bytes: pendingBytes / 100})
		require.InDelta(t, 3, tally.Latencies().Max.Seconds(), 0.1)
		require.InDelta(t, 1000, tally.Counts().Late, 5, "due in the first 2 of the 3 s, also those that had no place")
		require.InDelta(t, 2.8, p.Lag().Blocked.Seconds(), 0.1, "after 100 messages, a fifth of a second")
		require.Less(t, p.Lag().Late.P99, 50*time.Millisecond)
		require.Empty(t, p.Lag().Bottleneck(time.Second, 2500, p.Sent()))
	})
}

func TestPublisherEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule, err := decode(t, "{duration: 1h, constant: {rate: 10}}").Schedule(nil)
		require.NoError(t, err)
		p, err := NewPublisher(&fakePulsar{}, Publishing{Topic: "t"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, p.Run(ctx, schedule.Arrivals()))
		require.InDelta(t, 600, p.Published(), 1)
	})
}

// Pulsar's client forgets a message before it calls back: a flush in between waits for nothing.
func TestAMessageIsCountedIfTheClientCallsBackAfterTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePulsar{callsBack: time.Second}
		publish(t, f, "{duration: 1s, constant: {rate: 10}}", Messages{})
	})
}

func TestBottleneckNamesTheToolOrPulsar(t *testing.T) {
	for name, test := range map[string]struct {
		lag       Lag
		due, sent int64
		objective time.Duration
		want      string
	}{
		"none":                             {Lag{}, 1000, 1000, time.Second, ""},
		"as late as a machine is":          {Lag{Late: Latencies{P99: 99 * time.Millisecond}}, 1, 1, time.Second, ""},
		"late by itself":                   {Lag{Late: Latencies{P99: time.Second}}, 1, 1, time.Second, "by the tool itself"},
		"late, but little of the obective": {Lag{Late: Latencies{P99: time.Second}}, 1, 1, time.Minute, ""},
		"messages that were not sent": {
			Lag{Blocked: time.Minute}, 1000, 900, time.Second, "100 of 1000 messages were not sent; for 1m0s Pulsar took none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.lag.Bottleneck(test.objective, test.due, test.sent)
			require.True(t, strings.Contains(got, test.want) && (got == "") == (test.want == ""), got)
		})
	}
}

func TestMessagesNeedWhatCanBePublished(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*Messages)
		want  string
	}{
		"no room for the stamp": {func(m *Messages) { m.Bytes = 23 }, "messages.bytes is 23"},
		"keys below zero":       {func(m *Messages) { m.Keys.Count = -1 }, "messages.keys.count is -1"},
		"skew below zero":       {func(m *Messages) { m.Keys.Skew = -1 }, "messages.keys.skew is -1"},
		"batches of none":       {func(m *Messages) { m.Batching.MaxMessages = -1 }, "messages.batching.maxMessages is -1"},
		"batches for ever":      {func(m *Messages) { m.Batching.MaxDelay.Duration = time.Hour }, "maxDelay is 1h0m0s"},
		"many publishers":       {func(m *Messages) { m.Publishers = 1000 }, "messages.publishers is 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			var m Messages
			test.spoil(&m)
			_, err := NewPublisher(nil, Publishing{Topic: "t", Messages: m})
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := NewPublisher(nil, Publishing{})
	require.ErrorContains(t, err, "Topic is empty")
}

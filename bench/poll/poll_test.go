// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
)

// TestMain runs the test binary in the roles of the benchmark's processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-role=") {
		main()
		return
	}
	os.Exit(m.Run())
}

func testSetting() setting {
	return setting{Topics: 20, Partitions: 2, Busy: 10, Interval: time.Second}
}

func newTestBroker(t *testing.T) (*fakeBroker, string) {
	t.Helper()
	recipe, err := newRecipe(testSetting().Partitions)
	require.NoError(t, err)
	broker := &fakeBroker{setting: testSetting(), recipe: recipe, began: time.Now().Add(-time.Minute)}
	server := httptest.NewServer(broker)
	t.Cleanup(server.Close)
	return broker, server.URL
}

func TestBothContendersReadTheSameBacklog(t *testing.T) {
	broker, url := newTestBroker(t)
	source, err := pulsar.New(pulsar.Config{
		Registerer:   prometheus.NewRegistry(),
		AllowedHosts: []string{strings.TrimPrefix(url, "http://")},
	})
	require.NoError(t, err)
	triggers := newPerTrigger(testSetting(), url)
	busy := 0
	for i := range testSetting().Topics {
		sample, err := source.Fetch(t.Context(),
			backlog.Topic{Cluster: backlog.Cluster{AdminURL: url}, Name: testSetting().topic(i)},
			backlog.Request{Detail: backlog.Full})

		require.NoError(t, err)
		require.Len(t, sample.Partitions, 2)
		for _, partition := range sample.Partitions {
			require.Len(t, partition.Subscriptions, 1)
			require.NotNil(t, partition.AddedEntries)
			require.Len(t, partition.Subscriptions[0].Consumers, 2, "a full answer has the consumers")
			want := int64(0)
			if testSetting().waiting(i) {
				want = 500
			}
			require.Equal(t, want, partition.Subscriptions[0].BacklogEntries)
		}
		seen, err := triggers.backlog(t.Context(), i)
		require.NoError(t, err)
		require.Equal(t, sample.Partitions[0].Subscriptions[0].BacklogEntries, seen)
		if seen > 0 {
			busy++
		}
	}
	require.Equal(t, 2, busy, "10 of 100 topics have something waiting")
	require.Zero(t, broker.unknown.Load())
}

func TestASlimAnswerHasNoConsumers(t *testing.T) {
	_, url := newTestBroker(t)
	source, err := pulsar.New(pulsar.Config{
		Registerer:   prometheus.NewRegistry(),
		AllowedHosts: []string{strings.TrimPrefix(url, "http://")},
	})
	require.NoError(t, err)
	sample, err := source.Fetch(t.Context(),
		backlog.Topic{Cluster: backlog.Cluster{AdminURL: url}, Name: testSetting().topic(0)},
		backlog.Request{Detail: backlog.Slim})

	require.NoError(t, err)
	require.Empty(t, sample.Partitions[0].Subscriptions[0].Consumers)
}

func TestBacklogIsPublishedAndDelivered(t *testing.T) {
	_, url := newTestBroker(t)
	source, err := pulsar.New(pulsar.Config{
		Registerer:   prometheus.NewRegistry(),
		AllowedHosts: []string{strings.TrimPrefix(url, "http://")},
	})
	require.NoError(t, err)
	moved := 0
	for i := range testSetting().Topics {
		sample, err := source.Fetch(t.Context(),
			backlog.Topic{Cluster: backlog.Cluster{AdminURL: url}, Name: testSetting().topic(i)},
			backlog.Request{Detail: backlog.Full})

		require.NoError(t, err)
		for _, p := range sample.Partitions {
			require.Equal(t, p.PublishedMessages, p.Subscriptions[0].DeliveredMessages)
			require.InDelta(t, p.PublishedMessages, *p.AddedEntries, 10*perSecond, "one in an entry; it was asked for later")
			if testSetting().waiting(i) {
				require.GreaterOrEqual(t, p.PublishedMessages, int64(realMessages+60*perSecond))
				moved++
			} else {
				require.Equal(t, int64(realMessages), p.PublishedMessages)
			}
		}
	}
	require.Equal(t, 4, moved)
}

func TestTheBrokerRejectsUnknownRequests(t *testing.T) {
	broker, url := newTestBroker(t)
	triggers := newPerTrigger(testSetting(), url)
	_, err := triggers.backlog(t.Context(), testSetting().Topics)
	require.ErrorContains(t, err, "status 404")
	require.Equal(t, int64(1), broker.unknown.Load())
}

func TestEveryContenderMeasuresEverySize(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some 10 s of polling")
	}
	path := filepath.Join(t.TempDir(), "poll.json")
	var out bytes.Buffer
	args := []string{"-sizes=8,40", "-partitions=2", "-interval=1s", "-warm-up=1", "-measured=2", "-out=" + path}
	require.NoError(t, run(t.Context(), args, &out, io.Discard))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var written report
	require.NoError(t, json.Unmarshal(text, &written))
	require.Len(t, written.Results, 4)
	for _, one := range written.Results {
		require.Equal(t, one.TopicPartitions, 2*one.Topics)
		require.Positive(t, one.RequestsPerSecond)
		require.Positive(t, one.BytesPerSecond)
		require.Positive(t, one.CPUSeconds)
		require.Positive(t, one.Memory)
		require.Positive(t, one.Freshness)
		require.Zero(t, one.Unknown, "every topic was known after the warm-up")
		require.Contains(t, out.String(), one.Contender)
	}
}

func TestOursHasDefaultLimitsIfTheySuffice(t *testing.T) {
	s := setting{Topics: 5000, Interval: 10 * time.Second}
	require.Equal(t, pulsar.DefaultMaxRequestsPerSecondPerHost, s.requestsPerHost())
	require.Empty(t, s.flagsThatDiffer(nameOurs))
	s.Topics++
	require.Equal(t, "--max-requests-per-second=100000", s.flagsThatDiffer(nameOurs))
	require.Empty(t, s.flagsThatDiffer(namePerTrigger))
	r := report{Results: []result{{Contender: nameOurs, Flags: s.flagsThatDiffer(nameOurs)}}}
	var out bytes.Buffer
	require.NoError(t, r.writeTable(&out))
	require.Contains(t, out.String(), "--max-requests-per-second=100000")
}

func TestFlagsAreChecked(t *testing.T) {
	tests := map[string]struct{ flag, want string }{
		"a topic has partitions":               {"-partitions=0", "-partitions is 0"},
		"busy is a percentage":                 {"-busy=101", "-busy is 101"},
		"the poller has a shortest interval":   {"-interval=10ms", "-interval is 10ms"},
		"something has to be measured":         {"-measured=0", "-measured 0"},
		"a size is a number":                   {"-sizes=many", "-sizes has \"many\""},
		"a size has one topic at least":        {"-sizes=3", "-sizes has \"3\""},
		"a contender is one of the two":        {"-role=contender", "contender is \"\""},
		"a flag that does not exist is no use": {"-fast", "-fast"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), []string{tt.flag}, io.Discard, io.Discard), tt.want)
		})
	}
}

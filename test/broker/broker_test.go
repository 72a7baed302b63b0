// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"
)

// sharedBroker is the broker of all tests of this package.
var sharedBroker = shared.New("a real broker", func(ctx context.Context) (*Broker, error) {
	return Start(ctx, Config{Progress: os.Stderr})
}, (*Broker).Discard)

func TestMain(m *testing.M) { shared.Main(m, sharedBroker) }

// stats are the fields that show whether a restart kept its data.
type stats struct {
	MsgInCounter  int64 `json:"msgInCounter"`
	Subscriptions map[string]struct {
		MsgBacklog int64 `json:"msgBacklog"`
	} `json:"subscriptions"`
}

func read(t *testing.T, b *Broker, topic string) (got stats) {
	t.Helper()
	status, answer, err := b.Admin(t.Context(), http.MethodGet, topicPath(topic)+"/stats", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "%s", answer)
	require.NoError(t, json.Unmarshal(answer, &got))
	return got
}

func publish(t *testing.T, b *Broker, topic string, n int) {
	t.Helper()
	client, err := Connect(b.ServiceURL(), "")
	require.NoError(t, err)
	defer client.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: TopicName(topic), DisableBatching: true})
	require.NoError(t, err)
	defer producer.Close()
	for range n {
		_, err := producer.Send(t.Context(), &pulsar.ProducerMessage{Payload: []byte("x")})
		require.NoError(t, err)
	}
}

// alive reports whether a process with that text on its command line runs.
func alive(t *testing.T, text string) bool {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "ps", "-axww", "-o", "args=").Output()
	require.NoError(t, err)
	return strings.Contains(string(list), text)
}

func TestBrokerAnswersAndArrangesTopics(t *testing.T) {
	b, ctx := sharedBroker.Need(t), t.Context()
	status, answer, err := b.Admin(ctx, http.MethodGet, "/admin/v2/brokers/version", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, b.Version(), string(answer))

	require.NoError(t, b.CreateTopic(ctx, "arranged", 0))
	require.NoError(t, b.CreateSubscription(ctx, "arranged", "public/default/fn", Earliest))
	publish(t, b, "arranged", 3)
	require.NoError(t, b.CreateSubscription(ctx, "arranged", "late", Latest))
	got := read(t, b, "arranged")
	require.EqualValues(t, 3, got.MsgInCounter)
	require.EqualValues(t, 3, got.Subscriptions["public/default/fn"].MsgBacklog)
	require.EqualValues(t, 0, got.Subscriptions["late"].MsgBacklog)

	require.NoError(t, b.Unload(ctx, "arranged"))
	got = read(t, b, "arranged")
	require.EqualValues(t, 0, got.MsgInCounter, "an unload resets the counters")
	require.EqualValues(t, 3, got.Subscriptions["public/default/fn"].MsgBacklog)

	require.NoError(t, b.DeleteSubscription(ctx, "arranged", "public/default/fn"))
	require.NotContains(t, read(t, b, "arranged").Subscriptions, "public/default/fn")
	require.NoError(t, b.DeleteTopic(ctx, "arranged"))
	require.ErrorContains(t, b.DeleteTopic(ctx, "arranged"), "404")
}

// Entries of more than 16 KiB, such as large batches, also come from the bookie when the broker's cache is empty.
func TestBrokerDispatchesALargeEntryFromItsBookie(t *testing.T) {
	b, ctx := sharedBroker.Need(t), t.Context()
	require.NoError(t, b.CreateTopic(ctx, "large", 0))
	client, err := Connect(b.ServiceURL(), "")
	require.NoError(t, err)
	defer client.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: TopicName("large"), DisableBatching: true})
	require.NoError(t, err)
	defer producer.Close()
	payload := bytes.Repeat([]byte("x"), 32<<10)
	_, err = producer.Send(ctx, &pulsar.ProducerMessage{Payload: payload})
	require.NoError(t, err)
	require.NoError(t, b.Unload(ctx, "large")) // the cache with it

	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic: TopicName("large"), StartMessageID: pulsar.EarliestMessageID(),
	})
	require.NoError(t, err)
	defer reader.Close()
	message, err := reader.Next(ctx)
	require.NoError(t, err, "%s", b.LogTail(20))
	require.Equal(t, payload, message.Payload())
}

func TestBrokerArrangesPartitionedTopics(t *testing.T) {
	b, ctx := sharedBroker.Need(t), t.Context()
	require.NoError(t, b.CreateTopic(ctx, "persistent://public/default/parts", 3))
	require.ErrorContains(t, b.CreateTopic(ctx, "parts", 3), "409")
	require.NoError(t, b.CreateSubscription(ctx, "parts", "public/default/fn", Earliest))
	require.Contains(t, read(t, b, "parts-partition-2").Subscriptions, "public/default/fn")
	require.NoError(t, b.Unload(ctx, "parts"))
	require.NoError(t, b.DeleteTopic(ctx, "parts"))
	status, _, err := b.Admin(ctx, http.MethodGet, topicPath("parts-partition-0")+"/stats", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, status)
}

func TestBrokerHangsWhilePausedAndRecovers(t *testing.T) {
	b := sharedBroker.Need(t)
	require.NoError(t, b.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, err := b.Admin(ctx, http.MethodGet, "/admin/v2/brokers/health", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, b.Resume())
	status, answer, err := b.Admin(t.Context(), http.MethodGet, "/admin/v2/brokers/health", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "%s", answer)
}

func TestBrokerKeepsBacklogAndResetsCountersOverACrash(t *testing.T) {
	b, ctx := sharedBroker.Need(t), t.Context()
	admin, service, pid := b.AdminURL(), b.ServiceURL(), b.Process().Pid()
	require.NoError(t, b.CreateTopic(ctx, "kept", 0))
	require.NoError(t, b.CreateSubscription(ctx, "kept", "s", Earliest))
	publish(t, b, "kept", 50)
	require.EqualValues(t, 50, read(t, b, "kept").MsgInCounter)

	b.Kill()
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	_, _, err := b.Admin(ctx, http.MethodGet, "/admin/v2/brokers/health", nil)
	require.ErrorContains(t, err, "refused")

	require.NoError(t, b.Restart(ctx))
	require.Equal(t, []string{admin, service}, []string{b.AdminURL(), b.ServiceURL()})
	got := read(t, b, "kept")
	require.EqualValues(t, 0, got.MsgInCounter)
	require.EqualValues(t, 50, got.Subscriptions["s"].MsgBacklog)
	publish(t, b, "kept", 1)
	require.EqualValues(t, 51, read(t, b, "kept").Subscriptions["s"].MsgBacklog)
	require.NoError(t, b.DeleteTopic(ctx, "kept"))
}

func TestBrokerRestartsInOrderThenStopsWhilePausedAndLeavesNothing(t *testing.T) {
	sharedBroker.Need(t)
	b, err := Start(t.Context(), Config{WithoutWorker: true})
	require.NoError(t, err)
	status, _, err := b.Admin(t.Context(), http.MethodGet, "/admin/v2/worker/cluster", nil)
	require.NoError(t, err)
	require.NotEqual(t, http.StatusOK, status, "there is no worker")

	require.NoError(t, b.CreateTopic(t.Context(), "parts", 2))
	require.NoError(t, b.CreateSubscription(t.Context(), "parts", "s", Earliest))
	publish(t, b, "parts-partition-1", 5)
	require.NoError(t, b.Restart(t.Context()))
	got := read(t, b, "parts-partition-1")
	require.EqualValues(t, 0, got.MsgInCounter)
	require.EqualValues(t, 5, got.Subscriptions["s"].MsgBacklog)

	require.NoError(t, b.Pause())
	require.NoError(t, b.Stop())
	require.ErrorIs(t, syscall.Kill(b.Process().Pid(), 0), syscall.ESRCH)
	require.NoDirExists(t, b.dir)
	require.NoError(t, b.Stop(), "a second Stop is harmless")
	require.ErrorContains(t, b.Restart(t.Context()), "removed its data")
}

func TestBrokerThatCannotStartSaysWhyAndLeavesNothing(t *testing.T) {
	version, dir := sharedBroker.Need(t).Version(), t.TempDir()
	t.Setenv("TMPDIR", dir) // of the broker's directory
	_, err := Start(t.Context(), Config{Settings: map[string]string{"brokerServicePort": "none"}})
	require.ErrorContains(t, err, "starting pulsar "+version)
	require.ErrorContains(t, err, "brokerServicePort")
	requireNothing(t, dir)
}

// requireNothing requires that neither a process nor the directory of a broker is left.
func requireNothing(t *testing.T, dir string) {
	t.Helper()
	require.False(t, alive(t, dir))
	left, err := filepath.Glob(filepath.Join(dir, "pulsar-autoscaler-broker-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestBrokerEndsWithItsContext(t *testing.T) {
	sharedBroker.Need(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // of the broker's directory
	ctx, cancel := context.WithCancel(t.Context())
	ending := make(chan error, 1)
	go func() {
		_, err := Start(ctx, Config{})
		ending <- err
	}()
	require.Eventually(t, func() bool { return alive(t, dir) }, 5*time.Minute, 20*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ending, context.Canceled)
	requireNothing(t, dir)
}

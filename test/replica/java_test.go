// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// java returns a runner that is closed after the test's replicas.
func java(t *testing.T) (*Java, *completions) {
	t.Helper()
	var got completions
	dist := sharedBroker.Need(t).Dist()
	runner, err := NewJava(t.Context(), JavaConfig{Dist: dist, Progress: os.Stderr, Completed: got.add})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, runner.Close())
		require.NoDirExists(t, runner.dir)
	})
	return runner, &got
}

// One test, since every instance costs 2 s of CPU time.
func TestJavaConsumesAsItsFunctionAndReportsEveryMessage(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "java")
	in.ServiceTime, in.FailEvery, in.RedeliverAfter = time.Millisecond, 20, 100*time.Millisecond
	publish(t, b, in.Topics[0], 100) // a producer without a schema comes first

	runner, got := java(t)
	first := start[*Process](t, runner, in)
	in.ID, in.FailEvery = 1, 0
	second := start[*Process](t, runner, in)
	ready(t, first)
	ready(t, second)

	got.sequences(t, 100)
	require.Eventually(t, func() bool { return observe(t, b, in).MsgBacklog == 0 }, patience, often)
	seen := observe(t, b, in)
	require.Equal(t, Shared, seen.Type)
	require.Len(t, seen.Consumers, 2)
	ids := map[string]bool{}
	for _, consumer := range seen.Consumers {
		require.Equal(t, "pulsar-function", consumer.Metadata["application"])
		require.Equal(t, "public/default/java", consumer.Metadata["id"])
		ids[consumer.Metadata["instance_id"]] = true
	}
	require.Equal(t, map[string]bool{"0": true, "1": true}, ids)

	values, labels := scrape(t, first)
	require.Equal(t, values["pulsar_function_received_total"],
		values["pulsar_function_user_exceptions_total"]+values["pulsar_function_processed_successfully_total"])
	requireSameSeries(t, labels, in)

	pid := second.Pid()
	require.NoError(t, second.Kill())
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	require.Eventually(t, func() bool { return len(observe(t, b, in).Consumers) == 1 }, patience, often)
	require.NoError(t, first.Stop(t.Context()))
	require.NoError(t, first.Err())
	require.Empty(t, observe(t, b, in).Consumers)
}

// requireSameSeries compares the series of a Light replica with those of Pulsar's own instance 0.
func requireSameSeries(t *testing.T, ofJava map[string]map[string]string, in Instance) {
	t.Helper()
	in.ID, in.ServiceURL = 0, "pulsar://127.0.0.1:1" // it consumes nothing
	runner, _ := light(t)
	_, ofLight := scrape(t, start[*Consumer](t, runner, in))
	require.Len(t, ofLight, 6)
	for name, labels := range ofLight {
		require.Equal(t, ofJava[name], labels, name)
	}
}

func TestJavaThatCannotStartSaysWhy(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "broken")
	runner, _ := java(t)
	runner.config.JVMFlags = []string{"-XX:NoSuchFlag"}
	r := start[*Process](t, runner, in)
	<-r.Done()
	require.ErrorContains(t, r.Err(), "NoSuchFlag")
	require.ErrorContains(t, r.Err(), "function public/default/broken:0")
}

func TestJavaTakesTypeNameAndQueueOfItsSubscription(t *testing.T) {
	b := sharedBroker.Need(t)
	runner, _ := java(t)
	for _, kind := range []string{Failover, KeyShared} {
		in := instance(t, b, "java-"+kind)
		in.SubscriptionType, in.Subscription, in.ReceiverQueueSize = kind, "own/name", 7
		r := start[*Process](t, runner, in)
		ready(t, r)
		seen := observe(t, b, in)
		require.Equal(t, kind, seen.Type)
		require.Len(t, seen.Consumers, 1)
		require.Equal(t, 7, seen.Consumers[0].Permits)
	}
}

func TestAsynchronousJavaWorksOnSeveralMessagesAtOnce(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "java-async")
	in.ServiceTime, in.AsyncRequests = time.Hour, 4
	publish(t, b, in.Topics[0], 10)
	runner, got := java(t)
	r := start[*Process](t, runner, in)
	ready(t, r)
	const received, processed = "pulsar_function_received_total", "pulsar_function_processed_successfully_total"
	var values map[string]float64
	require.Eventually(t, func() bool {
		values, _ = scrape(t, r)
		return values[received] > 4
	}, patience, often)
	require.Zero(t, values[processed])
	require.NoError(t, r.Kill())

	in.ServiceTime, in.FailEvery, in.RedeliverAfter = time.Millisecond, 5, 100*time.Millisecond
	ready(t, start[*Process](t, runner, in))
	got.sequences(t, 10)
}

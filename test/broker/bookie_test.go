// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABookieThatRegistersAgainAndAgainFlaps(t *testing.T) {
	const (
		crashed = "INFO  ResourceLockImpl - Successfully re-acquired missing lock at /ledgers/available/127.0.0.1:39483\n"
		lost    = "INFO  ResourceLockImpl - Lock on resource /ledgers/available/127.0.0.1:39483 was invalidated. state Valid\n"
	)
	require.False(t, flaps("INFO  main - messaging service is ready"), "a first start")
	require.False(t, flaps(crashed), "a start after a crash")
	require.True(t, flaps(strings.Repeat(lost, 50)))
}

func TestAWorkerThatCreatesNoTopicTimedOut(t *testing.T) {
	const (
		timeout = "Caused by: org.apache.pulsar.client.admin.PulsarAdminException$TimeoutException: timed out\n"
		create  = "\tat org.apache.pulsar.functions.worker.PulsarWorkerService.tryCreateNonPartitionedTopic\n"
		lead    = "\tat org.apache.pulsar.functions.worker.PulsarWorkerService.start\n"
	)
	require.True(t, workerTimedOut(timeout+create+lead))
	require.False(t, workerTimedOut(timeout+lead), "another call")
	require.False(t, workerTimedOut("Caused by: java.net.BindException: in use\n"+create+lead), "another reason")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func failing() Scenario {
	s := scenario()
	s.Seconds, s.Failing = 1500, func(second float64) float64 {
		if second >= 100 && second < 700 {
			return 0.9
		}
		return 0
	}
	return s
}

func exceptions(system *System) (sum float64) {
	for _, instance := range system.InstancesSample().Instances {
		sum += float64(instance.UserExceptions)
	}
	return sum
}

func TestFailingMessagesStayInTheBacklogAndAreRetriedEachMinute(t *testing.T) {
	s := failing()
	s.Initial = 8
	system := New(s, 3)
	to(system, 99)
	require.Zero(t, exceptions(system))
	to(system, 159)
	published, _, entries, _ := counters(t, system)
	require.Greater(t, published, entries)
	require.InDelta(t, 0.9*100*60, entries, 300)
	require.InDelta(t, entries, exceptions(system), 300, "each once")
	sample, err := system.TopicSample(0)
	require.NoError(t, err)
	require.InDelta(t, entries, sample.Partitions[0].Subscriptions[0].UnackedMessages, 300,
		"they are still with their consumers")
	before := exceptions(system)
	to(system, 169)
	require.InDelta(t, 10*(90+90), exceptions(system)-before, 150, "those that are new, and those of a minute ago")
}

func TestRepeatedFailuresDelayNewMessages(t *testing.T) {
	system := New(failing(), 3)
	to(system, 400)
	before := system.score.Finished
	to(system, 699)
	failed := system.subscription.retries.total + system.subscription.nackedTotal()
	require.InDelta(t, 3*50*60, failed, 600, "what three replicas can try in a minute")
	require.InDelta(t, 100*600, system.subscription.queued(), 6000, "and all others wait behind that, the good ones too")
	require.Less(t, system.score.Finished-before, 400.0)
	require.InDelta(t, system.subscription.queued()-failed, system.Processable(), 1e-6)
}

func TestAllSucceedOnceDownstreamRecovers(t *testing.T) {
	system := New(failing(), 3)
	to(system, 700)
	before := exceptions(system)
	system.Scale(20)
	run(system, still)
	require.InDelta(t, before, exceptions(system), 20)
	require.InDelta(t, system.score.Messages, system.score.Finished, 300)
	require.InDelta(t, system.score.Finished, processed(system), 1, "each counted once by the instances")
	require.Zero(t, system.subscription.nackedTotal())
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDownstreamAnswersInTurnAtItsOwnRate(t *testing.T) {
	now := time.Unix(1000, 0)
	d := NewDownstream(100)
	first := d.answers(now)
	for i := range 50 {
		require.Equal(t, first.Add(time.Duration(i+1)*10*time.Millisecond), d.answers(now), "a call behind %d others",
			i+1)
	}
	require.False(t, d.answers(now.Add(time.Hour)).After(now.Add(time.Hour)), "a call behind no others")
	var none *Downstream
	require.Equal(t, now, none.answers(now))
}

func TestLightReplicasBehindADownstreamDoNoMoreThanItDoes(t *testing.T) {
	b := sharedBroker.Need(t)
	const messages, rate = 200, 100
	var got completions
	runner := NewLightBehind(NewDownstream(rate), got.add)
	t.Cleanup(runner.Close)
	in := instance(t, b, "limited")
	in.ServiceTime, in.ReceiverQueueSize = time.Millisecond, 5
	for in.ID = range 4 {
		ready(t, start[*Consumer](t, runner, in))
	}
	publish(t, b, in.Topics[0], messages)

	all := got.sequences(t, messages)
	by := map[int]bool{}
	begun, ended := all[0].Done, all[0].Done
	for _, done := range all {
		by[done.Instance] = true
		if done.Done.Before(begun) {
			begun = done.Done
		}
		if done.Done.After(ended) {
			ended = done.Done
		}
	}
	require.Greater(t, len(by), 1, "several replicas share the work")
	require.GreaterOrEqual(t, ended.Sub(begun), (messages-1)*time.Second/rate-debtMax, "four replicas of 1000/s each")
}

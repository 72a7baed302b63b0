// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

func TestLightReplicasBehindADownstreamDoNoMoreThanItDoes(t *testing.T) {
	b := sharedBroker.Need(t)
	const messages, limit = 200, 100
	var got completions
	runner := NewLightBehind(rate.NewLimiter(limit, 5), got.add)
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
		if first := done.Done.Add(-done.Took); first.Before(begun) {
			begun = first // before it asked the downstream: what delays the replica later does not count
		}
		if done.Done.After(ended) {
			ended = done.Done
		}
	}
	require.Greater(t, len(by), 1, "several replicas share the work")
	require.GreaterOrEqual(t, ended.Sub(begun), (messages-1)*time.Second/limit-debtMax, "four replicas of 1000/s each")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// keyShared is three overloaded replicas with full receive queues of 500: 10 s of work.
func keyShared(keys float64) *System {
	s := scenario()
	s.Type, s.Rate, s.ReceiveQueue, s.Keys = backlog.KeyShared, Constant(200), 500, keys
	system := New(s, 3)
	to(system, 60)
	return system
}

// shareOfTheFourth returns the share of its hashes' messages that a fourth replica gets in each second after it joined.
func shareOfTheFourth(system *System, seconds int) []float64 {
	system.Scale(4)
	r := system.set.replicas[3]
	to(system, r.consumes-1)
	var shares []float64
	for range seconds {
		system.Step()
		shares = append(shares, 1-r.blocked)
	}
	return shares
}

func TestANewKeySharedConsumerWaitsForFormerOnes(t *testing.T) {
	system := keyShared(3) // a key each
	shares := shareOfTheFourth(system, 20)
	r := system.set.replicas[3]
	require.Less(t, shares[8], 0.01, "all the while that the others work on 500 messages at 50 a second")
	require.InDelta(t, 0, shares[5], 1e-3)
	require.InDelta(t, 1, shares[14], 1e-9, "and no longer")
	require.Positive(t, r.received)
	require.Zero(t, system.subscription.waiting[drainingQueue].total)
}

func TestOfManyKeysMostMoveAtOnce(t *testing.T) {
	shares := shareOfTheFourth(keyShared(30000), 20)
	require.Greater(t, shares[0], 0.9, "500 messages of 10,000 keys")
	require.InDelta(t, 1, shares[14], 1e-9)
}

func TestMessagesOfAFormerConsumerAreHeldBack(t *testing.T) {
	system := keyShared(3)
	system.Scale(4)
	to(system, system.set.replicas[3].consumes-1)
	before := system.subscription.waiting[0].total
	system.Step()
	require.InDelta(t, before/4, system.subscription.waiting[drainingQueue].total, before/8, "a quarter of all hashes")
	require.Less(t, system.Processable(), system.subscription.queued()-before/8, "more replicas would not help")
	to(system, system.Second()+5)
	require.Zero(t, system.set.replicas[3].received)
}

func TestADisconnectedConsumerHoldsNothingBack(t *testing.T) {
	system := keyShared(3)
	system.Scale(2)
	system.Step()
	require.Zero(t, system.subscription.draining)
	system.Scale(3)
	r := system.set.replicas[2]
	to(system, r.consumes)
	require.InDelta(t, 1, r.blocked, 0.01)
	for _, former := range system.set.replicas[:2] {
		system.set.disconnect(former)
	}
	system.Step()
	require.Zero(t, r.blocked)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestSignalsOfAComponentPolicy(t *testing.T) {
	env := newTestEnv(t, nil, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
	signals, _ := testSignals(t, env)
	subscription, err := signals.subscriptionOf(
		t.Context(),
		signalKey{resource: v1alpha1.GroupResource(), key: fixture.Key()},
	)
	require.NoError(t, err)
	require.Equal(
		t,
		backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in").WithPatterns(),
		subscription,
	)
}

func TestSignalsOfAConsumerPolicy(t *testing.T) {
	p := fixture.ConsumerPolicy("argoproj.io/v1alpha1", "Rollout")
	env := newTestEnv(t, nil, p)
	signals, resolve := testSignals(t, env)
	_, err := signals.Read(v1alpha1.GroupResource(), fixture.Key(), backlog.Slim, env.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	require.Equal(t, 1, resolve(), "its target is not read: it may be of any kind")
	env.answer(700, 10_000)
	reading, err := signals.Read(v1alpha1.GroupResource(), fixture.Key(), backlog.Slim, env.now)
	requireReady(t, 700, reading, err)
}

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

func TestSignalsOfAComponentAreFoundThroughItsPolicy(t *testing.T) {
	w := newTestReads(t, nil, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
	signals, err := NewSignals(SignalsConfig{
		Store: w.store, Targets: w.targets,
		Policies: &Policies{reader: w.client, synced: func() bool { return true }}, Now: w.clock, Forget: w.forget,
	})
	require.NoError(t, err)
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

func TestSignalsOfAConsumerAreFoundThroughItsPolicyAlone(t *testing.T) {
	p := fixture.ConsumerPolicy("argoproj.io/v1alpha1", "Rollout")
	w := newTestReads(t, nil, p)
	signals, look := newSignals(t, w)
	_, err := signals.Read(v1alpha1.GroupResource(), fixture.Key(), backlog.Slim, w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	require.Equal(t, 1, look(), "its target is not looked at: it may be of any kind")
	w.answer(700, 10_000)
	reading, err := signals.Read(v1alpha1.GroupResource(), fixture.Key(), backlog.Slim, w.now)
	require.NoError(t, err)
	ready, err := reading.Ready.Value()
	require.NoError(t, err)
	require.InDelta(t, 700, ready, 0)
}

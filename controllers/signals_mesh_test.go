// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestSignalsOfAComponentAreFoundThroughItsPolicy(t *testing.T) {
	w := newTestReads(t, nil, testMesh(), testChild(), componentPolicy(), testConfigMap())
	signals, err := NewSignals(SignalsConfig{
		Store: w.store, Targets: w.targets,
		Policies: &Policies{reader: w.client, synced: func() bool { return true }}, Now: w.clock, Forget: w.forget,
	})
	require.NoError(t, err)
	subscription, err := signals.find(t.Context(), asked{resource: v1alpha1.GroupResource(), key: testKey()})
	require.NoError(t, err)
	require.Equal(t, backlog.NewSubscription(testCluster(), "public/default/resize", "in").WithPatterns(), subscription)
}

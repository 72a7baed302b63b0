// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestPartitionsAreThoseOfTheReading(t *testing.T) {
	w := newWorkerWorld(t)
	s, look := newSignals(t, w)
	_, err := s.PartitionsOfComponent(testComponent(), w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	look()
	subscription, err := s.subscription(asked{component: testComponent()}, backlog.Slim, w.now)
	require.NoError(t, err)
	_, err = s.PartitionsOfSubscription(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrNoData)
	w.answer(700, 10_000)
	ofComponent, err := s.PartitionsOfComponent(testComponent(), w.now)
	require.NoError(t, err)
	require.Len(t, ofComponent, 1)
	ready, err := ofComponent[0].Ready.Value()
	require.NoError(t, err)
	require.EqualValues(t, 700, ready)
	ofSubscription, err := s.PartitionsOfSubscription(subscription, w.now)
	require.NoError(t, err)
	require.Equal(t, ofComponent, ofSubscription)
}

func TestPartitionsOfAnObjectThatIsNotThereAreUnknownAsItIs(t *testing.T) {
	w := newWorkerWorld(t)
	s, _ := newSignals(t, w)
	nobody := types.NamespacedName{Namespace: "media", Name: "nobody"}
	_, ofReading := s.Read(v1alpha1.GroupResource(), nobody, backlog.Slim, w.now)
	require.Error(t, ofReading)
	_, err := s.Partitions(v1alpha1.GroupResource(), nobody, w.now)
	require.Equal(t, ofReading, err)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestProbeCountsInARow(t *testing.T) {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	p := newProbe(&corev1.Probe{PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 2, InitialDelaySeconds: 3}, began)
	require.False(t, p.due(began.Add(2*time.Second)))
	require.True(t, p.due(began.Add(3*time.Second)))
	require.False(t, p.succeeds())
	p = p.after(began, nil)
	require.True(t, p.succeeds())
	p = p.after(began, errors.New("refused"))
	require.True(t, p.succeeds(), "one failure is not enough")
	require.False(t, p.fails())
	p = p.after(began, errors.New("refused"))
	require.False(t, p.succeeds())
	require.True(t, p.fails())
	require.True(t, probe{}.succeeds(), "no probe is a success")
}

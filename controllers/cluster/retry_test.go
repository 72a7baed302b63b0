// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAReconcileThatFailedForLongIsTriedWithinAMinute(t *testing.T) {
	limiter := ControllerOptions(1, time.Minute).RateLimiter
	var pause time.Duration
	for range 40 {
		pause = limiter.When(reconcile.Request{})
	}
	require.Equal(t, time.Minute, pause)
}

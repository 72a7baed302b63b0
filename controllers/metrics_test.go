// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// rate() misses the first observation of a histogram that is created by it.
func TestActuationIsShownBeforeTheFirstRaise(t *testing.T) {
	m := newControllerMetrics(prometheus.NewRegistry())
	require.Equal(t, 3, testutil.CollectAndCount(m.actuation), "one for each actuator")
}

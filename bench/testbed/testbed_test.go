// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

func at(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }

func TestBetweenBeginsWithTheStateThen(t *testing.T) {
	timeline := []pods.Sample{
		{Time: at(-5), Desired: 1}, {Time: at(0), Desired: 2}, {Time: at(4), Desired: 3}, {Time: at(10), Desired: 9},
	}
	require.Equal(t, []pods.Sample{{Time: at(0), Desired: 2}, {Time: at(4), Desired: 3}}, Between(timeline, at(0), at(10)))
	require.Equal(t, []pods.Sample{{Time: at(0)}}, Between(nil, at(0), at(10)), "there is always a state")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALoadChangesFromNowOn(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	l := NewLoad(10, begun)
	l.Publish(20, at(10))
	require.Equal(t, Counts{Published: 300, Done: 300, Replicas: 1}, l.Counts(at(20)))
	l.Publish(75, at(20))
	require.Equal(t, Counts{Published: 1050, Done: 550, Replicas: 1}, l.Counts(at(30)), "one replica processes 25/s")
	l.Publish(0, at(30))
	l.Scale(4, at(30))
	require.Equal(t, Counts{Published: 1050, Done: 950, Replicas: 4}, l.Counts(at(34)))
	require.Equal(t, Counts{Published: 1050, Done: 1050, Replicas: 4}, l.Counts(at(60)))
}

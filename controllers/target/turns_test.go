// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamespacesTakeTurns(t *testing.T) {
	var turns Turns[int]
	_, some := turns.Next()
	require.False(t, some)
	for i := range 3 {
		turns.Add("neighbour", i)
	}
	turns.Add("victim", 10)
	require.Equal(t, 4, turns.Len())
	var taken []int
	for turns.Len() > 0 {
		one, some := turns.Next()
		require.True(t, some)
		taken = append(taken, one)
	}
	require.Equal(t, []int{0, 10, 1, 2}, taken)
	require.Empty(t, turns.namespaces)
	require.Empty(t, turns.queues, "a namespace without elements is forgotten")
}

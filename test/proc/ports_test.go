// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestFreePortsAreDistinctAndFree(t *testing.T) {
	ports, err := FreePorts(50)
	require.NoError(t, err)
	require.Len(t, ports, 50)
	seen := map[int]bool{}
	var config net.ListenConfig
	for _, port := range ports {
		require.False(t, seen[port], "port %d was given twice", port)
		seen[port] = true
		l, err := config.Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

// The other callers' ports have no listeners yet.
func TestFreePortsAreGivenToNobodyElseForLong(t *testing.T) {
	var group errgroup.Group
	given := make([][]int, 100)
	for i := range given {
		group.Go(func() (err error) {
			given[i], err = FreePorts(10)
			return err
		})
	}
	require.NoError(t, group.Wait())
	seen := map[int]bool{}
	for _, port := range slices.Concat(given...) {
		require.False(t, seen[port], "port %d was given twice", port)
		seen[port] = true
	}
}

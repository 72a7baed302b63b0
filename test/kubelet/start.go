// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// Start runs the pods of a cluster until the end of the test, with instances of distribution.Version.
func Start(t *testing.T, cluster *rest.Config) *Kubelet {
	t.Helper()
	dist, err := distribution.Fetch(t.Context(), distribution.Version, os.Stderr)
	require.NoError(t, err)
	jar, err := replica.Jar(t.Context(), dist, os.Stderr)
	require.NoError(t, err)
	nodes, err := New(Config{REST: cluster, Dist: dist, Jar: jar})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return nodes.Run(ctx) })
	t.Cleanup(func() {
		stop()
		require.NoError(t, group.Wait())
	})
	return nodes
}

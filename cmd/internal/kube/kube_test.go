// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// TestWritesHaveNoRateLimit: client-go's own limit is 5 requests a second, and statuses carry the decisions.
func TestWritesHaveNoRateLimit(t *testing.T) {
	config, err := (&Options{Kubeconfig: fixture.Kubeconfig(t, "https://127.0.0.1:6443")}).RESTConfig()
	require.NoError(t, err)
	require.Negative(t, config.QPS, "0 is client-go's default of 5 requests a second")
}

func TestTheLeaseIsInThePodsNamespace(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "namespace"), []byte("autoscaling\n"), 0o600))
	o := NewOptions()
	namespace, err := o.leaseNamespaceOr(dir)
	require.NoError(t, err)
	require.Equal(t, "autoscaling", namespace)

	_, err = o.leaseNamespaceOr(t.TempDir())
	require.ErrorContains(t, err, "set --lease-namespace outside of a cluster")

	o.LeaseNamespace = "mine"
	namespace, err = o.leaseNamespaceOr(dir)
	require.NoError(t, err)
	require.Equal(t, "mine", namespace)
}

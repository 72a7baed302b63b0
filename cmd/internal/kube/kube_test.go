// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWritesHaveNoRateLimit: client-go's own limit is 5 requests a second, and statuses carry the decisions.
func TestWritesHaveNoRateLimit(t *testing.T) {
	const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
users: [{name: me, user: {token: secret}}]
current-context: here
`
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	config, err := (&Options{Kubeconfig: path}).RESTConfig()
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

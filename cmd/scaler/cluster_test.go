// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
)

// With only the permissions of deploy/scaler, on a real API server: it is ready before the kind is installed, sees it
// once it is, and can read the adapter's Lease.
func TestThePermissionsOfTheManifestsSuffice(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	control, err := cluster.Start(t.Context(), cluster.Config{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(control.Stop)
	manifests := filepath.Join("..", "..", "deploy")
	scalers, err := filepath.Glob(filepath.Join(manifests, "scaler", "*.yaml"))
	require.NoError(t, err)
	scalers = slices.DeleteFunc(scalers, func(path string) bool {
		return slices.Contains([]string{
			"kustomization.yaml", "deployment.yaml", "certificate.yaml", "triggerauthentication.yaml",
		}, filepath.Base(path))
	})
	require.NoError(t,
		control.ApplyFiles(t.Context(),
			append([]string{filepath.Join(manifests, "adapter", "namespace.yaml")}, scalers...)...))
	kubeconfig, err := control.ServiceAccountKubeconfig(t.Context(), "pulsar-autoscaler", "scaler")
	require.NoError(t, err)

	o, err := ParseOptions([]string{
		"--kubeconfig=" +
			kubeconfig, "--lease-namespace=pulsar-autoscaler", "--grpc-bind-address=127.0.0.1:0",
		"--metrics-bind-address=127.0.0.1:0",
		"--shutdown-delay=0s",
	}, nil)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	s, err := newScaler(ctx, o, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	// Without these rights it would be ready, too, a minute after its start.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, s.ready())
		for _, kind := range []string{"HorizontalPodAutoscaler", "Lease", "StatefulSet"} {
			require.True(c, s.reading.Targets.Reader.Installed(kind), kind)
		}
		_, err := s.reading.Pods.Addresses(backlog.Object{Kind: "Function", Namespace: "default", Name: "resize"})
		require.NoError(c, err)
	}, cluster.WaitLimit, 100*time.Millisecond, "a right is missing")

	connection, err := grpc.NewClient(s.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, connection.Close()) })
	client := pb.NewExternalScalerClient(connection)
	ask := func() error {
		_, err := client.IsActive(t.Context(), &pb.ScaledObjectRef{
			Namespace: "default", Name: "so", ScalerMetadata: map[string]string{"policy": "resize"},
		})
		return err
	}
	require.ErrorContains(t, ask(), "kind AutoscalingPolicy of pulsar-autoscaler.io/v1alpha1 is not installed")
	require.ErrorContains(t, s.reading.DecisionMaker.Alive(time.Now()), "does not exist")

	lease, renewed := filepath.Join(t.TempDir(), "lease.yaml"), time.Now().UTC()
	require.NoError(t,
		os.WriteFile(lease,
			[]byte("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: pulsar-autoscaler, "+
				"name: pulsar-autoscaler-adapter}, spec: {holderIdentity: a, renewTime: \""+renewed.Format(
				"2006-01-02T15:04:05.000000Z07:00")+"\"}}"), 0o600))
	require.NoError(t,
		control.ApplyFiles(t.Context(), lease,
			filepath.Join(manifests, "crd", "pulsar-autoscaler.io_autoscalingpolicies.yaml")))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, s.reading.DecisionMaker.Alive(renewed))
		require.ErrorContains(c, ask(), `AutoscalingPolicy "resize" in namespace "default" not found`)
	}, cluster.WaitLimit, 200*time.Millisecond, "kinds are looked for every 30s")
}

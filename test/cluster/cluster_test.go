// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
)

// startCluster is the control plane of one test; it needs the binaries, which a first run builds.
func startCluster(t *testing.T, config Config) *Cluster {
	t.Helper()
	needControlPlane(t)
	if config.Progress == nil {
		config.Progress = os.Stderr
	}
	start := time.Now()
	c, err := Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	t.Logf("the control plane was ready after %s", time.Since(start).Round(time.Millisecond))
	return c
}

func needControlPlane(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a real control plane")
	}
}

func TestEndOfTheContextStopsTheCluster(t *testing.T) {
	needControlPlane(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := Start(ctx, Config{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	cancel()
	for _, server := range []Program{c.ControllerManager, c.APIServer, c.Etcd} {
		<-server.Done()
	}
	requireGone(t, c.Etcd, c.APIServer, c.ControllerManager)
}

func TestFailedStartLeavesNoProcessBehind(t *testing.T) {
	needControlPlane(t)
	bins, err := binaries.BuildControlPlane(t.Context(), os.Stderr)
	require.NoError(t, err)
	// This test binary refuses the flags of a server: it ends with the list of its own.
	broken, err := os.Executable()
	require.NoError(t, err)
	cases := map[string]struct {
		breaks  func(*binaries.ControlPlane)
		culprit string
		started int
	}{
		"when etcd is broken":           {func(b *binaries.ControlPlane) { b.Etcd = broken }, "etcd", 1},
		"when the API server is broken": {func(b *binaries.ControlPlane) { b.APIServer = broken }, "kube-apiserver", 2},
		"when the controllers are broken": {
			func(b *binaries.ControlPlane) { b.ControllerManager = broken }, "kube-controller-manager", 3,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			config := Config{Binaries: bins}
			test.breaks(&config.Binaries)
			c, err := prepare(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(c.Stop)
			err = c.startOrStop(t.Context())
			require.ErrorContains(t, err, "waiting for "+test.culprit+" to be ready: the process has ended")
			require.ErrorContains(t, err, "-test.v", "the error must show what the culprit printed")
			requireGone(t, []Program{c.Etcd, c.APIServer, c.ControllerManager}[:test.started]...)
			require.NoDirExists(t, c.Dir())
		})
	}
}

func TestTwoClustersRunSideBySide(t *testing.T) {
	one, two := startCluster(t, Config{}), startCluster(t, Config{})
	namespace := object("v1", "Namespace", "", "only-in-one")
	require.NoError(t, one.Apply(t.Context(), namespace))
	require.NoError(t, one.Client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	require.ErrorContains(t, two.Client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace), "not found")
	clients, err := discovery.NewDiscoveryClientForConfig(two.RESTConfig())
	require.NoError(t, err)
	version, err := clients.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, two.config.Binaries.KubernetesVersion, version.GitVersion)
	require.Equal(t, "1", version.Major)
	require.Equal(t, "37", version.Minor)

	one.Stop()
	requireGone(t, one.Etcd, one.APIServer, one.ControllerManager)
	require.NoDirExists(t, one.Dir())
	one.Stop() // again
	require.NoError(t, two.Client.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}),
		"the other cluster must go on")
}

// requireGone asks the kernel: signal 0 to a process that was reaped fails.
func requireGone(t *testing.T, servers ...Program) {
	t.Helper()
	for _, server := range servers {
		p := server.Process()
		require.NotNil(t, p, "%s was never started", server.Name())
		<-p.Done()
		require.ErrorIs(t, syscall.Kill(p.Pid(), 0), syscall.ESRCH, "%s is still there", server.Name())
	}
}

func TestStartRefuses(t *testing.T) {
	unused := binaries.ControlPlane{Etcd: "unused", APIServer: "unused", ControllerManager: "unused"}
	t.Run("a negative sync period", func(t *testing.T) {
		_, err := Start(t.Context(), Config{Binaries: unused, HPASyncPeriod: -time.Second})
		require.ErrorContains(t, err, "HPASyncPeriod is -1s: it must be 0 (15s) or more")
	})
}

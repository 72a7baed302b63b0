// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAnAPIServerThatIsRestartedHasWhatWasThereAtTheSameAddress(t *testing.T) {
	c := startCluster(t, Config{})
	require.NoError(t, c.Apply(t.Context(), object("v1", "Namespace", "", "kept")))
	before := c.APIServer.Process()
	require.NoError(t, c.APIServer.Restart(t.Context()))
	require.NotEqual(t, before.Pid(), c.APIServer.Process().Pid())
	require.NoError(t, c.Client.Get(t.Context(), client.ObjectKey{Name: "kept"}, &corev1.Namespace{}))
	select {
	case <-c.ControllerManager.Done():
		t.Fatal("the controllers ended with it")
	default:
	}
	c.Stop()
	requireGone(t, c.Etcd, c.APIServer, c.ControllerManager)
}

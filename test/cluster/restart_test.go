// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnAPIServerThatIsRestartedHasWhatWasThereAtTheSameAddress(t *testing.T) {
	c := startCluster(t, Config{})
	require.NoError(t, c.Apply(t.Context(), object("v1", "Namespace", "", "kept")))
	before := c.APIServer.Process()
	require.NoError(t, c.APIServer.Restart(t.Context()))
	require.NotEqual(t, before.Pid(), c.APIServer.Process().Pid())
	_, err := c.client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
	select {
	case <-c.ControllerManager.Done():
		t.Fatal("the controllers ended with it")
	default:
	}
	c.Stop()
	requireGone(t, c.Etcd, c.APIServer, c.ControllerManager)
}

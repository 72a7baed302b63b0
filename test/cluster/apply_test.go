// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	workerCRD     = "testdata/worker-crd.yaml"
	workerObjects = "testdata/worker.yaml"
)

func TestApplyServesNewKindsAndServiceAccountsHaveTheirOwnRightsOnly(t *testing.T) {
	c := startCluster(t, Config{})
	require.NoError(t, c.ApplyFiles(t.Context(), workerCRD, workerObjects))
	require.NoError(t, c.ApplyFiles(t.Context(), workerCRD, workerObjects), "applying again must change nothing")

	path, err := c.ServiceAccountKubeconfig(t.Context(), "workers", "reader")
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Resource(workers()).Namespace("workers").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = client.Resource(workers()).Namespace("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "got %v", err)
	require.ErrorContains(t, err, "system:serviceaccount:workers:reader")

	_, err = c.ServiceAccountKubeconfig(t.Context(), "workers", "nobody")
	require.ErrorContains(t, err, "apply the service account workers/nobody first")
	err = c.Apply(t.Context(), object("example.org/v1", "Unknown", "", "x"))
	require.ErrorContains(t, err, `applying Unknown x: no matches for kind "Unknown"`)

	admin, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	require.NoError(t, err)
	client, err = dynamic.NewForConfig(admin)
	require.NoError(t, err)
	_, err = client.Resource(workers()).Namespace("default").Get(t.Context(), "counter", metav1.GetOptions{})
	require.NoError(t, err)
	t.Run("the last writer of replicas is told by managed fields", func(t *testing.T) { requireLastWriters(t, c) })
}

func TestReadObjectsTakesDocumentsAndListsApart(t *testing.T) {
	objects, err := readObjects(workerObjects)
	require.NoError(t, err)
	kinds := make([]string, 0, len(objects))
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
	}
	require.Equal(t, []string{"Worker", "Namespace", "ServiceAccount", "Role", "RoleBinding"}, kinds)
}

func TestReadObjectsRefusesWhatIsNoObject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(path, []byte("kind: [\n"), 0o600))
	_, err := readObjects(path)
	require.Error(t, err)
	require.NoError(t, os.WriteFile(path, []byte("metadata: {name: x}\n"), 0o600))
	_, err = readObjects(path)
	require.ErrorContains(t, err, "apiVersion, kind and name")
}

// object returns an object with only its name.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(namespace)
	return o
}

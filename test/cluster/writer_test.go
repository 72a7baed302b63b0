// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// requireLastWriters sends kubectl's requests for the replicas of a worker, in an order in which each takes the field
// from the one before.
func requireLastWriters(t *testing.T, c *Cluster) {
	t.Helper()
	config := c.RESTConfig()
	config.UserAgent = "kubectl/v1.36.3 (linux/amd64) kubernetes/0f8defc" // which names the manager of kubectl scale
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	objects := client.Resource(workers()).Namespace("default")
	const merge, apply = types.MergePatchType, types.ApplyPatchType
	replicas := 1
	for _, write := range []struct {
		patch       types.PatchType
		manager     string
		subresource []string
		want        string
	}{
		{merge, "", []string{"scale"}, "kubectl scale (manager kubectl, Update, subresource scale)"},
		{merge, "kubectl-edit", nil, "kubectl edit (manager kubectl-edit, Update) at "},
		{merge, "kubectl-patch", []string{"scale"}, "kubectl patch (manager kubectl-patch, Update, subresource scale)"},
		{merge, "kubectl-client-side-apply", nil, "kubectl apply (manager kubectl-client-side-apply, Update) at "},
		{apply, "kubectl", nil, "kubectl apply --server-side (manager kubectl, Apply) at "},
		{merge, "", []string{"scale"}, "kubectl scale (manager kubectl, Update, subresource scale)"},
		{apply, "argocd-controller", nil, "Argo CD (manager argocd-controller, Apply) at "},
	} {
		replicas++
		options := metav1.PatchOptions{FieldManager: write.manager}
		text := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
		if write.patch == apply {
			options.Force = new(true)
			text = fmt.Sprintf(`{"apiVersion":"test.pulsar-autoscaler.io/v1","kind":"Worker",`+
				`"metadata":{"name":"counter"},"spec":{"replicas":%d}}`, replicas)
		}
		_, err := objects.Patch(t.Context(), "counter", write.patch, []byte(text), options, write.subresource...)
		require.NoError(t, err)
		object, err := objects.Get(t.Context(), "counter", metav1.GetOptions{})
		require.NoError(t, err)
		writer, err := plan.LastWriter(object.GetManagedFields(), []string{"spec", "replicas"})
		require.NoError(t, err, write.want)
		require.Contains(t, writer.String(), write.want)
	}
	_, err = objects.Patch(t.Context(), "counter", merge, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
	object, err := objects.Get(t.Context(), "counter", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = plan.LastWriter(object.GetManagedFields(), []string{"spec", "replicas"})
	require.ErrorIs(t, err, plan.ErrNoWriter, "a Scale of 0 replicas has no such field")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWithWatchNamespacesPermissionsEndThere asks a real API server what the ServiceAccounts may do.
func TestWithWatchNamespacesPermissionsEndThere(t *testing.T) {
	if testing.Short() {
		t.Skip("needs helm and a real control plane")
	}
	people := administrator(t)
	for _, name := range []string{namespace, "media", "billing"} {
		require.NoError(t, client.IgnoreAlreadyExists(people.Create(t.Context(), namespaceOf(name))))
	}
	for _, object := range ofKind(render(t, valueFiles(t)["namespaced"]), "ClusterRole", "ClusterRoleBinding", "Role",
		"RoleBinding") {
		require.NoError(t, people.Create(t.Context(), object))
		t.Cleanup(func() { require.NoError(t, people.Delete(context.WithoutCancel(t.Context()), object)) })
	}
	const ours = "pulsar-autoscaler.io"
	for name, test := range map[string]struct {
		account, verb, group, resource string
		// everywhere is for what is of the whole cluster, own for what is granted in the release's namespace alone.
		everywhere, own bool
	}{
		"policies":  {account: "adapter", verb: "list", group: ours, resource: "autoscalingpolicies"},
		"statuses":  {account: "adapter", verb: "patch", group: ours, resource: "autoscalingpolicies/status"},
		"Functions": {account: "adapter", verb: "watch", group: "compute.functionmesh.io", resource: "functions"},
		"entries of FunctionMeshes": {
			account: "adapter", verb: "patch", group: "compute.functionmesh.io", resource: "functionmeshes",
		},
		"StatefulSets": {account: "adapter", verb: "patch", group: "apps", resource: "statefulsets/scale"},
		"Deployments":  {account: "adapter", verb: "patch", group: "apps", resource: "deployments/scale"},
		"autoscalers": {
			account: "adapter", verb: "delete", group: "autoscaling", resource: "horizontalpodautoscalers",
		},
		"ScaledObjects":       {account: "adapter", verb: "create", group: "keda.sh", resource: "scaledobjects"},
		"pods":                {account: "adapter", verb: "list", resource: "pods"},
		"Secrets":             {account: "adapter", verb: "get", resource: "secrets"},
		"ConfigMaps":          {account: "adapter", verb: "get", resource: "configmaps"},
		"the scaler":          {account: "scaler", verb: "list", group: ours, resource: "autoscalingpolicies"},
		"pods, the scaler":    {account: "scaler", verb: "watch", resource: "pods"},
		"Secrets, the scaler": {account: "scaler", verb: "get", resource: "secrets"},
		"APIServices": {
			account: "adapter", verb: "list", group: "apiregistration.k8s.io", resource: "apiservices", everywhere: true,
		},
		"token reviews": {
			account: "adapter", verb: "create", group: "authentication.k8s.io", resource: "tokenreviews", everywhere: true,
		},
		"the Lease": {account: "adapter", verb: "update", group: "coordination.k8s.io", resource: "leases", own: true},
	} {
		t.Run(name, func(t *testing.T) {
			for where, want := range map[string]bool{
				"media": !test.own, "billing": !test.own, namespace: test.own || test.everywhere, "default": test.everywhere,
				"": test.everywhere,
			} {
				resource, subresource, _ := strings.Cut(test.resource, "/")
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: "system:serviceaccount:" + namespace + ":" + test.account,
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: where, Verb: test.verb, Group: test.group, Resource: resource, Subresource: subresource,
					},
				}}
				require.NoError(t, people.Create(t.Context(), review))
				require.Equal(t, want, review.Status.Allowed, "in namespace %q: %s", where, review.Status.Reason)
			}
		})
	}
}

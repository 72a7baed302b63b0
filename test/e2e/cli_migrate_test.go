// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// TestCLIMigrate moves a Function over in a namespace of its own, as a user with the permissions that the help of the
// command names.
func TestCLIMigrate(t *testing.T) {
	t.Parallel()
	const namespace, name, user = "moving", "moved", "mover"
	theStage.Need(t)
	place(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	place(t, mesh.Function(namespace, name, mesh.FunctionConfig{
		Topics: []string{"moved"}, PulsarConfig: "absent", Replicas: 1, MaxReplicas: 6,
	}))
	place(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{mesh.Group}, Verbs: []string{"list"},
			Resources: []string{"functions", "sinks", "sources", "functionmeshes"},
		}, {
			APIGroups: []string{"keda.sh"}, Verbs: []string{"list"}, Resources: []string{"scaledobjects"},
		}},
	})
	for _, role := range []string{user, "system:aggregate-to-view", "pulsar-autoscaler-view"} {
		place(t, bindingOf(namespace, user, role))
	}
	path := plugin(t)
	migrateCommand := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), path, append([]string{
			"migrate", "--kubeconfig", scene.Cluster.Kubeconfig(), "--as", user, "-n", namespace,
		}, args...)...)
		out, err := command.CombinedOutput()
		return string(out), err
	}

	out := awaitOutput(t, "the user may read", migrateCommand)
	require.Contains(t, out, "# Function moved: scaled today by maxReplicas of Function moved.\n")
	require.Contains(t, out, "\n  maxReplicas: 6\n")
	require.Contains(t, out, "#      Function moving/moved, spec: maxReplicas\n")

	out, err := migrateCommand("--apply", "--yes")
	require.Error(t, err, "a viewer may not create policies: %s", out)
	require.Contains(t, out, "bind the ClusterRole edit")
	place(t, bindingOf(namespace, user, "pulsar-autoscaler-edit"))
	out = awaitOutput(t, "the user may create policies", func(args ...string) (string, error) {
		return migrateCommand(append(args, "--apply", "--yes")...)
	})
	require.Contains(t, out, "pap/moved created in namespace moving\n")
	p := v1alpha1.AutoscalingPolicy{}
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &p))
	t.Cleanup(func() { remove(t, &p) })
	require.Equal(t, v1alpha1.ModeRecommend, p.Spec.Mode)
	require.Equal(t, v1alpha1.ConflictTakeOver, p.Spec.ConflictPolicy)

	out, err = migrateCommand("--apply", "--yes")
	require.Error(t, err, "there is no Pulsar for it: %s", out)
	require.Contains(t, strings.Join(strings.Fields(out), " "), "policy moved is not Ready: ")
}

// awaitOutput runs a command until the API server knows the permissions of its user.
func awaitOutput(t *testing.T, what string, command func(args ...string) (string, error)) (out string) {
	t.Helper()
	scene.Await(t, what, func(context.Context) (_ bool, _ string, err error) {
		out, err = command()
		return err == nil, out, nil
	})
	return out
}

// bindingOf gives a user the permissions of a ClusterRole in a namespace.
func bindingOf(namespace, user, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: user + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

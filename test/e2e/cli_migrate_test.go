// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// TestCLIMigrate moves a Function with Function Mesh's autoscaler over and back, in a namespace of its own, as a user
// with the permissions that the help of the command names. No step moves a replica.
func TestCLIMigrate(t *testing.T) {
	t.Parallel()
	const namespace, name, user, replicas = "moving", "moved", "mover", 2
	theStage.Need(t)
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	topic := broker.TopicName(name + "-in")
	require.NoError(t, scene.Broker.CreateTopic(t.Context(), topic, 0))
	pulsar := mesh.PulsarConfig(namespace, "pulsar", scene.Broker.AdminURL(), scene.Broker.ServiceURL())
	create(t, pulsar)
	function := mesh.Function(namespace, name, mesh.FunctionConfig{
		Topics: []string{topic}, PulsarConfig: pulsar.Name, Replicas: replicas, MinReplicas: replicas, MaxReplicas: 6,
	})
	output := broker.TopicName(name + "-out")
	require.NoError(t, unstructured.SetNestedField(function.Object, output, "spec", "output", "topic"))
	create(t, function)
	create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{mesh.Group}, Verbs: []string{"list"},
			Resources: []string{"functions", "sinks", "sources", "functionmeshes"},
		}, {
			APIGroups: []string{"keda.sh"}, Verbs: []string{"list"}, Resources: []string{"scaledobjects"},
		}},
	})
	for _, role := range []string{user, "system:aggregate-to-view", "pulsar-autoscaler-view"} {
		create(t, bindingOf(namespace, user, role))
	}
	path := plugin(t)
	migrateCommand := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), path, append([]string{
			"migrate", "--kubeconfig", scene.Cluster.Kubeconfig(), "--as", user, "-n", namespace,
		}, args...)...)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	applyCommand := func(...string) (string, error) { return migrateCommand("--apply", "--yes") }

	out := awaitOutput(t, "the user may read", migrateCommand)
	require.Contains(t, out, "# Function moved: scaled today by maxReplicas of Function moved.\n")
	require.Contains(t, out, "\n  maxReplicas: 6\n")
	require.Contains(t, out, "#      Function moving/moved, spec: maxReplicas\n")

	out, err := applyCommand()
	require.Error(t, err, "a viewer may not create policies: %s", out)
	require.Contains(t, out, "bind the ClusterRole edit")
	create(t, bindingOf(namespace, user, "pulsar-autoscaler-edit"))
	out = awaitOutput(t, "the user may create policies", applyCommand)
	require.Contains(t, out, "pap/moved created in namespace moving\n")
	p := v1alpha1.AutoscalingPolicy{}
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &p))
	t.Cleanup(func() { remove(t, &p) })
	require.Equal(t, v1alpha1.ModeRecommend, p.Spec.Mode)
	require.Equal(t, v1alpha1.ConflictTakeOver, p.Spec.ConflictPolicy)

	own, ours := autoscalerNamed(name+"-function"), autoscalerNamed(plan.AutoscalerName(name))
	own.Namespace, ours.Namespace = namespace, namespace
	awaitMoved := func(moved bool) {
		scene.Await(t, fmt.Sprint("the Function to be moved over: ", moved), func(ctx context.Context) (bool, string, error) {
			withoutOwn, errOwn := gone(ctx, own)
			withoutOurs, errOurs := gone(ctx, ours)
			return withoutOwn == moved && withoutOurs != moved, fmt.Sprint(withoutOwn, withoutOurs),
				errors.Join(errOwn, errOurs)
		})
	}
	awaitMoved(false)
	out = awaitOutput(t, "the policy to be ready", applyCommand)
	require.Contains(t, out, "2 set today by maxReplicas of Function moved\n")
	require.Contains(t, out, "pap/moved switched.")
	require.Contains(t, out, "\n  kubectl -n moving delete pap moved\n")
	awaitMoved(true)
	require.NoError(t, scene.Client.Delete(t.Context(), &p))
	scene.AwaitGone(t, &p)
	awaitMoved(false)
	require.Equal(t, int32(6), own.Spec.MaxReplicas)
	require.Equal(t, []int{replicas}, scene.Mesh.Desired(namespace, name, time.Time{}))
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

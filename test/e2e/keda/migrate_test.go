// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestCLIMigrateMovesAScaledObjectOverAndBack goes step by step from KEDA's pulsar scaler to the
// HorizontalPodAutoscaler of a policy, back, and once more to stay, then with KEDA as the actuator. No step moves a
// replica.
func TestCLIMigrateMovesAScaledObjectOverAndBack(t *testing.T) {
	t.Parallel()
	const name, replicas = "migrated", 2
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 20 * time.Millisecond, Replicas: replicas})
	trigger := map[string]any{"type": "pulsar", "metadata": map[string]any{
		"adminURL": scene.Broker.AdminURL(), "topic": f.Topic, "subscription": "public/default/" + name,
		"msgBacklogThreshold": "100",
	}}
	object := stage.NewScaledObject(name, autoscalingv2.CrossVersionObjectReference{}, trigger, map[string]any{
		"minReplicaCount": int64(replicas), "maxReplicaCount": int64(10), "pollingInterval": int64(2),
	})
	require.NoError(t, scene.Client.Create(t.Context(), object))
	o := scene.ScaledObject(name)
	leaving(t, o.Remove)
	path := filepath.Join(t.TempDir(), "kubectl-pap")
	require.NoError(t, stage.Build(t.Context(), "./cmd/kubectl-pap", path))
	// awaitStep repeats a step until the policy is ready for it.
	awaitStep := func(want string) {
		scene.Await(t, want, func(ctx context.Context) (bool, string, error) {
			out, err := exec.CommandContext(ctx, path, "migrate", "--kubeconfig", scene.Cluster.Kubeconfig(),
				"-n", stage.Namespace, "--from", "keda", "--apply", "--yes").CombinedOutput()
			return err == nil && strings.Contains(string(out), want), string(out), nil
		})
	}
	awaitPaused := func(paused bool) {
		what := fmt.Sprint("the ScaledObject to be paused: ", paused)
		scene.Await(t, what, func(ctx context.Context) (bool, string, error) {
			read, err := o.Read(ctx)
			if err != nil {
				return false, "", err
			}
			return (len(read.GetAnnotations()) > 0) == paused, fmt.Sprint(read.GetAnnotations()), nil
		})
	}
	for _, stays := range []bool{false, true} {
		scene.Await(t, "KEDA's HorizontalPodAutoscaler", func(ctx context.Context) (bool, string, error) {
			hpa, err := o.Autoscaler(ctx)
			return hpa != nil, "there is none", err
		})
		awaitStep("pap/" + name + " created")
		awaitPaused(false)
		awaitStep("kubectl -n " + stage.Namespace + " delete pap " + name)
		awaitPaused(true)
		awaitScaling(t, f, v1alpha1.ActuatorHPA, v1alpha1.KindAutoscalingPolicy)
		p, err := f.Policy(t.Context())
		require.NoError(t, err)
		require.Equal(t, []v1alpha1.ObjectName{name}, p.Status.TakenOver.ScaledObjects)
		if !stays {
			require.NoError(t, scene.Client.Delete(t.Context(), p))
			scene.AwaitGone(t, p)
			awaitPaused(false)
		}
	}
	require.NoError(t, o.Remove(t.Context()))
	patchPolicy(t, name, `{"spec":{"actuator":"KEDA"}}`)
	awaitScaling(t, f, v1alpha1.ActuatorKEDA, "ScaledObject")
	require.Equal(t, []int{replicas}, scene.Mesh.Desired(stage.Namespace, name, time.Time{}))
}

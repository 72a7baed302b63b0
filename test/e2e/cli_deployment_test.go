// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

// testBenchOfADeployment has a contender without Function Mesh, with the plugin's own consumer.
func testBenchOfADeployment(t *testing.T, plugin string) {
	t.Helper()
	scenario := benchScenario(t, 5, `maxReplicas: 1
contenders: [{name: deployed, policy: {}}]
limits: {maxLateRatio: 0.01, maxP99: 1m, maxDuplicates: 0}
`)
	text, err := os.ReadFile(scenario)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(scenario,
		[]byte(strings.Replace(string(text), "function: {", "function: {kind: Deployment, ", 1)), 0o600))
	ctx, end := context.WithCancel(t.Context())
	n := &node{plugin: plugin, processes: map[types.UID]*exec.Cmd{}}
	ended := make(chan error, 1)
	go func() { ended <- n.run(ctx) }()
	b := benchRun(t, plugin, run.ExitMet, allDone, "-f", scenario, "--kubeconfig", scene.Cluster.Kubeconfig())
	end()
	require.NoError(t, <-ended)
	require.Contains(t, b.told, "deployed: creating Deployment deployed-")
	c := b.result.Contenders[0]
	require.Equal(t, run.Output, c.LatencyFrom)
	require.Equal(t, 1, c.Usage.MostReplicas)
	require.Empty(t, benchLeftovers(t))
}

// node runs the plugin for the pods of contenders, as their image does. A pod is deleted when its process has ended.
type node struct {
	plugin    string
	processes map[types.UID]*exec.Cmd
}

const nodeFinalizer = "test.pulsar-autoscaler.io/node"

func (n *node) run(ctx context.Context) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var pods corev1.PodList
		if err := scene.Client.List(ctx, &pods, client.HasLabels{"bench.pulsar-autoscaler.io/contender"}); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("listing pods: %w", err)
		}
		for i := range pods.Items {
			if err := n.follow(ctx, &pods.Items[i]); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// follow starts the process of a pod, or ends it.
func (n *node) follow(ctx context.Context, pod *corev1.Pod) error {
	process := n.processes[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil && process != nil:
		if err := errors.Join(process.Process.Signal(os.Interrupt), process.Wait()); err != nil {
			return fmt.Errorf("ending the consumer of pod %s: %w", pod.Name, err)
		}
		delete(n.processes, pod.UID)
		return scene.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	case pod.DeletionTimestamp != nil || process != nil:
		return nil
	}
	held := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+nodeFinalizer+`"]}}`))
	if err := scene.Client.Patch(ctx, pod, held); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return nil // it was deleted meanwhile, and gets no finalizer then
		}
		return err
	}
	process = exec.CommandContext(ctx, n.plugin, pod.Spec.Containers[0].Args...)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		return err
	}
	n.processes[pod.UID] = process
	running := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	return scene.Client.Status().Patch(ctx, pod, client.RawPatch(types.MergePatchType, running))
}

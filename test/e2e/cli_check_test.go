// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestCLICheck tries a policy out before it exists, and checks it when it does.
func TestCLICheck(t *testing.T) {
	t.Parallel()
	const name = "cli-checked"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond})
	p := newPolicy(name)
	p.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy))
	text, err := yaml.Marshal(p)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	path := plugin(t)
	check := func(args ...string) string {
		command := exec.CommandContext(t.Context(), path, append([]string{"check"}, append(args,
			"--kubeconfig", scene.Cluster.Kubeconfig(), "-n", stage.Namespace)...)...)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	requireChecked := func(out string) {
		require.Contains(t, out, "\n  ok          metrics API: Service pulsar-autoscaler/adapter serves\n")
		require.Contains(t, out, "\n  ok          rights: ServiceAccount pulsar-autoscaler/adapter has the rights\n")
		require.Contains(t, out, "\n  ok          target: Function "+name+" exists and can be scaled\n")
		require.Contains(t, out, "\n  ok          topics: Pulsar answers for every input topic\n")
	}
	out := check("-f", file, "--yes")
	requireChecked(out)
	require.Contains(t, out, "\n  ok          autoscalers: mode is Recommend: no HorizontalPodAutoscaler is\n")
	err = scene.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1alpha1.AutoscalingPolicy{})
	require.True(t, apierrors.IsNotFound(err), "the policy is deleted: %v", err)

	addPolicy(t, p)
	// The HPA's first sync may be before the first decision, which is an error of the check until the next sync.
	f.AwaitPolicy(t, "Pulsar and the HPA to be checked", func(p *v1alpha1.AutoscalingPolicy) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) &&
			meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionScalingActive)
	})
	requireChecked(check(name))
}

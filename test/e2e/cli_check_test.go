// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestCLICheck tries a policy out before it exists, and checks it when it does.
func TestCLICheck(t *testing.T) {
	t.Parallel()
	const name = "cli-checked"
	addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond})
	p := newPolicy(name)
	p.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy))
	text, err := yaml.Marshal(p)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	path := plugin(t)
	checked := []string{
		"metrics API: Service pulsar-autoscaler/adapter serves", "target: Function " + name + " exists and can be scaled",
		"rights: ServiceAccount pulsar-autoscaler/adapter has the rights", "topics: Pulsar answers for every input topic",
	}
	// awaitChecked repeats a check: a stalled machine answers it late.
	awaitChecked := func(lines []string, args ...string) {
		awaitOutput(t, fmt.Sprint("check ", args), func(...string) (string, error) {
			command := exec.CommandContext(t.Context(), path, append([]string{"check"}, append(args,
				"--kubeconfig", scene.Cluster.Kubeconfig(), "-n", stage.Namespace)...)...)
			out, err := command.CombinedOutput()
			for _, line := range lines {
				if !strings.Contains(string(out), "\n  ok          "+line+"\n") {
					err = errors.Join(err, errors.New("no line "+line))
				}
			}
			return string(out), err
		})
	}
	awaitChecked(append(slices.Clone(checked), "autoscalers: mode is Recommend: no HorizontalPodAutoscaler is"),
		"-f", file, "--yes")
	err = scene.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &v1alpha1.AutoscalingPolicy{})
	require.True(t, apierrors.IsNotFound(err), "the policy is deleted: %v", err)

	addPolicy(t, p)
	awaitChecked(checked, name) // the HPA's first sync may be before the first decision, which is an error of the check
}

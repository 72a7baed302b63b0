// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestCLITopExplainAndCheck reads a policy as a user who may only view it.
func TestCLITopExplainAndCheck(t *testing.T) {
	t.Parallel()
	const name, viewer = "cli-listed", "viewer"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond})
	p := newPolicy(name)
	p.Spec.MaxReplicas = 3 // fewer than the load needs, so that each decision wants more
	addPolicy(t, p)
	for role, parts := range map[string]string{"view": "system:aggregate-to-view", "policies": "pulsar-autoscaler-view"} {
		create(t, &rbacv1.RoleBinding{ // of what ClusterRole view consists of
			ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: viewer + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: parts},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: viewer}},
		})
	}
	publish(t, f, load.Constant(90))
	f.AwaitPolicy(t, "the wait and the capacity to be known", func(p *v1alpha1.AutoscalingPolicy) bool {
		s := p.Status
		return s.Capacity != nil && s.Signals != nil && s.Signals.Wait != nil && s.SpecReplicas != nil && *s.SpecReplicas > 2
	})
	path := plugin(t)
	papCommand := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), path, append(args,
			"--kubeconfig", scene.Cluster.Kubeconfig(), "--as", viewer, "-n", stage.Namespace)...)
	}

	// A stalled machine makes signals unknown for a while.
	awaitLines := func(args []string, lines ...string) {
		awaitOutput(t, fmt.Sprint(args), func(...string) (string, error) {
			out, err := papCommand(args...).CombinedOutput()
			for _, line := range lines {
				if !regexp.MustCompile(line).Match(out) {
					err = errors.Join(err, errors.New("no line "+line))
				}
			}
			return string(out), err
		})
	}
	awaitLines([]string{"top"}, name+` +\d\S*/\S+ +\S+ +\d\S* +\S+ +\d+/\d+/\d+ `)
	awaitLines([]string{"explain", name}, `\n  capacity +\d\S* messages/s by a replica that is busy`,
		`\n  equation +\S*\d`, `\n  limited by +maxReplicas, which is 3\n`,
		`\n  guards +tried, and did not hold: WithinObjective, `, `\nWRITTEN BY +HPA\n  object +HorizontalPodAutoscaler `)
	awaitEvent(t, name, "DesiredReplicasChanged", "->")
	awaitLines([]string{"explain", name, "--at", "0s"},
		`\n  \d\d:\d\d:\d\d +DesiredReplicasChanged: \d+ -> \d+: `)
	awaitLines([]string{"check", name}, `\n  ok          target: Function `+name+` exists and can be scaled\n`,
		`\n  unknown     metrics API: your user needs list on\n`)

	watch := papCommand("top", "--watch")
	drawn, err := watch.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, watch.Start())
	titles := 0
	for lines := bufio.NewScanner(drawn); lines.Scan(); {
		if strings.Contains(lines.Text(), " policies: ") {
			titles++
		}
		if titles == 2 { // the first list, and the informer's
			require.NoError(t, watch.Process.Signal(os.Interrupt))
			titles++
		}
	}
	require.NoError(t, watch.Wait(), "an interrupt ends it")
}

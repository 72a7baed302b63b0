// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// steadyPolicies each need steadyReplicas: 12 messages a second, 8 a replica. The rate must change by a third before
	// the number of replicas does.
	steadyPolicies, steadyReplicas = 20, 2
	// longestSilence of the metrics API. HPAs read their metrics every 15 s by default.
	longestSilence = 5 * time.Second
	// decided messages of one Function take at least two polls.
	decided = 300
)

// TestUpgradeAndRollbackMoveNoReplicas upgrades from the first version of the chart to that of the tree, with another
// image tag, number of replicas and log level, and rolls back.
func TestUpgradeAndRollbackMoveNoReplicas(t *testing.T) {
	s := openAll(t)
	s.createNamespace(t, namespace)
	functions := s.addSteadyFunctions(t)
	values := s.flags("image.tag=" + tagBefore)
	values[1] = "pulsar.adminUrl=" + s.adminURL // its name in that version
	s.helm(t, append([]string{"install", release, filepath.Join("testdata", "chart-first.tgz")}, values...)...)
	s.awaitMetricsAPI(t)
	endLoad := s.scaleSteadily(t, functions)
	s.requireRunning(t, tagBefore, 2)

	since := time.Now()
	stop := s.request(t, metricsPath+"/namespaces/"+stage.Namespace+"/autoscalingpolicies.pulsar-autoscaler.io/"+
		functions[0].Name+"/pulsar_function_desired_replicas")
	s.upgrade(t, "adapter.replicas=3", "adapter.extraArgs[0]=--log-level=debug")
	s.requireRunning(t, tag, 3)
	awaitMore(t, functions)
	t.Logf("upgraded after %s", time.Since(since).Round(time.Second))
	s.helm(t, "rollback", release, "1", "--wait", "--timeout", patience.String())
	s.requireRunning(t, tagBefore, 2)
	awaitMore(t, functions)
	t.Logf("rolled back after %s", time.Since(since).Round(time.Second))
	require.LessOrEqual(t, stop().silence, longestSilence)
	endLoad()
	for _, f := range functions {
		require.Equal(t, []int{steadyReplicas}, s.Mesh.Desired(stage.Namespace, f.Name, since), f.Name)
		p, err := f.Policy(t.Context())
		require.NoError(t, err)
		conditions := p.Status.Conditions
		require.True(t, meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady), "%s: %v", f.Name, conditions)
	}

	s.removeRelease(t)
	var group errgroup.Group
	for _, f := range functions {
		group.Go(func() error { return f.Remove(t.Context()) })
	}
	require.NoError(t, group.Wait())
	s.removeNamespace(t, namespace)
}

// addSteadyFunctions adds Functions with one replica.
func (s *scene) addSteadyFunctions(t *testing.T) []*stage.Function {
	t.Helper()
	functions := make([]*stage.Function, steadyPolicies)
	var group errgroup.Group
	group.SetLimit(4)
	for i := range functions {
		group.Go(func() (err error) {
			functions[i], err = s.AddFunction(t.Context(), stage.FunctionConfig{
				Name: fmt.Sprintf("steady-%02d", i), ServiceTime: 20 * time.Millisecond, AdminURL: s.adminURL,
			})
			return err
		})
	}
	require.NoError(t, group.Wait())
	return functions
}

// scaleSteadily applies a policy for each Function and publishes to all until they have the replicas that they need.
// endLoad, or the end of the test, stops the load.
func (s *scene) scaleSteadily(t *testing.T, functions []*stage.Function) (endLoad func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var group errgroup.Group
	for _, f := range functions {
		group.Go(func() error { return f.Publish(ctx, load.Constant(12)) })
		p := stage.NewPolicy(f.Name, 1, maxReplicas, objective)
		rate := v1alpha1.RatePerReplica{MessagesPerSecond: resource.MustParse("8")}
		p.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyRatePerReplica, RatePerReplica: &rate}}
		require.NoError(t, s.Client.Create(t.Context(), p))
	}
	for _, f := range functions {
		s.awaitReplicas(t, f, steadyReplicas, steadyReplicas)
	}
	return func() {
		cancel()
		require.NoError(t, group.Wait())
	}
}

// requireRunning fails unless that many replicas of the adapter are ready, all of the tag.
func (s *scene) requireRunning(t *testing.T, tag string, replicas int32) {
	t.Helper()
	adapter, err := s.client.AppsV1().Deployments(namespace).Get(t.Context(), "adapter", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, registry+"/adapter:"+tag, adapter.Spec.Template.Spec.Containers[0].Image)
	require.Equal(t, []int32{replicas, replicas}, []int32{adapter.Status.UpdatedReplicas, adapter.Status.ReadyReplicas})
}

// awaitMore returns once each Function has processed more messages, so that the adapter has decided again.
func awaitMore(t *testing.T, functions []*stage.Function) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, f := range functions {
		before := f.Score.Counts().Done
		more := int64(decided)
		if i > 0 {
			more = 1 // they have worked meanwhile
		}
		require.NoError(t, cluster.WaitFor(ctx, "more messages of "+f.Name, pollTime,
			func(context.Context) (bool, string, error) {
				done := f.Score.Counts().Done
				return done >= before+more, fmt.Sprint(done-before, " more"), nil
			}))
	}
}

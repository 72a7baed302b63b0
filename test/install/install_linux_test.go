// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestInstallScaleUninstall(t *testing.T) {
	s := open(t)
	s.createNamespace(t, namespace)
	const name = "resize"
	f, err := s.AddFunction(t.Context(), stage.FunctionConfig{
		Name: name, ServiceTime: 50 * time.Millisecond, AdminURL: s.adminURL,
	})
	require.NoError(t, err)
	before := s.objects(t)

	began := time.Now()
	notes := s.install(t)
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	require.Contains(t, notes, "STATUS: deployed")
	s.awaitMetricsAPI(t)
	t.Logf("metrics served after %s", time.Since(began).Round(time.Millisecond))
	s.requireNamespacesGo(t, "after-install")

	endLoad := s.scales(t, f)
	t.Logf("scaled after %s", time.Since(began).Round(time.Second))
	s.requireNamespacesGo(t, "while-scaled")

	s.upgrade(t, "adapter.podAnnotations.restarted=once")
	s.requireNamespacesGo(t, "after-upgrade")
	endLoad()

	s.helm(t, "uninstall", release, "--wait", "--timeout", "60s")
	s.requireNamespacesGo(t, "after-uninstall")
	s.requireLeft(t, before,
		"apiextensions.k8s.io/v1/customresourcedefinitions /autoscalingpolicies.pulsar-autoscaler.io",
		"apiextensions.k8s.io/v1/customresourcedefinitions /autoscalingpolicysets.pulsar-autoscaler.io",
		"apiregistration.k8s.io/v1/apiservices /v1alpha1.pulsar-autoscaler.io", // of the CRDs
		"autoscaling/v2/horizontalpodautoscalers default/"+plan.AutoscalerName(name),
		"pulsar-autoscaler.io/v1alpha1/autoscalingpolicies default/"+name,
	)
	require.NoError(t, f.Remove(t.Context()))
	s.removeNamespace(t, namespace, time.Minute) // pods end within their grace period
}

// scales applies a policy and publishes until at least three replicas run. endLoad, or the end of the test, stops the
// load.
func (s *scene) scales(t *testing.T, f *stage.Function) (endLoad func()) {
	t.Helper()
	require.NoError(t, s.Client.Create(t.Context(), newPolicy(f)))
	load, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return f.Publish(load, func(time.Duration) float64 { return 60 }) })
	endLoad = func() {
		cancel()
		require.NoError(t, group.Wait())
	}
	t.Cleanup(cancel)
	s.awaitReplicas(t, f, 3, 6)
	return endLoad
}

// newPolicy returns a policy for the Function.
func newPolicy(f *stage.Function) *v1alpha1.AutoscalingPolicy {
	p := &v1alpha1.AutoscalingPolicy{}
	p.Namespace, p.Name = stage.Namespace, f.Name
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: f.Name,
	}
	p.Spec.MaxReplicas = 10
	p.Spec.LatencyObjective.Duration = 30 * time.Second
	return p
}

// upgrade upgrades the release to other values.
func (s *scene) upgrade(t *testing.T, values ...string) {
	t.Helper()
	args := append([]string{"upgrade", release, chart(t)}, s.flags(values...)...)
	s.helm(t, append(args, "--timeout", "120s")...)
}

// awaitMetricsAPI returns once the aggregator reaches the adapter, which registers itself.
func (s *scene) awaitMetricsAPI(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, s.Cluster.WaitMetricsAPI(ctx))
}

// awaitReplicas returns once between from and to replicas run.
func (s *scene) awaitReplicas(t *testing.T, f *stage.Function, from, to int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	err := cluster.WaitFor(ctx, fmt.Sprintf("%d to %d replicas of %s", from, to, f.Name), pollTime,
		func(ctx context.Context) (bool, string, error) {
			replicas, err := f.Replicas(ctx)
			if err != nil {
				return false, "", err
			}
			p, err := f.Policy(ctx)
			return replicas.Status >= from && replicas.Status <= to, fmt.Sprint(replicas, p.Status.Conditions), err
		})
	require.NoError(t, err)
}

// objects lists the objects of all API resources, except those that Kubernetes creates and deletes itself.
func (s *scene) objects(t *testing.T) []string {
	t.Helper()
	config := s.Cluster.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // about deprecated versions
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	lists, err := kinds.ServerPreferredResources()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	var found []string
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for i := range list.APIResources {
			resource := version.WithResource(list.APIResources[i].Name)
			if slices.Contains(transient(), resource.Resource) {
				continue
			}
			items, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, resource)
			for j := range items.Items {
				item := &items.Items[j]
				found = append(found, strings.Join([]string{list.GroupVersion, resource.Resource}, "/")+" "+
					item.GetNamespace()+"/"+item.GetName())
			}
		}
	}
	slices.Sort(found)
	return found
}

// transient are resources of which objects come and go with pods, or expire.
func transient() []string {
	return []string{"events", "pods", "endpoints", "endpointslices", "controllerrevisions", "replicasets"}
}

// requireLeft fails unless the objects of before and more are the only ones.
func (s *scene) requireLeft(t *testing.T, before []string, more ...string) {
	t.Helper()
	allowed := slices.Concat(before, more)
	var surplus []string
	ctx, cancel := context.WithTimeout(t.Context(), promptly)
	defer cancel()
	err := cluster.WaitFor(ctx, "all else to be gone", time.Second, func(context.Context) (bool, string, error) {
		surplus = slices.DeleteFunc(s.objects(t), func(one string) bool { return slices.Contains(allowed, one) })
		return len(surplus) == 0, strings.Join(surplus, "\n"), nil
	})
	require.NoError(t, err)
	for _, one := range more {
		require.Contains(t, s.objects(t), one)
	}
}

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestInstallScaleUninstall(t *testing.T) {
	s := openAll(t)
	s.createNamespace(t, namespace)
	const name = "resize"
	f := s.addFunction(t, name, serviceTime)
	before := s.objects(t)

	began := time.Now()
	notes := s.install(t)
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	require.Contains(t, notes, "STATUS: deployed")
	s.awaitMetricsAPI(t)
	t.Logf("metrics served after %s", time.Since(began).Round(time.Millisecond))

	endLoad := s.scales(t, f)
	t.Logf("scaled after %s", time.Since(began).Round(time.Second))
	s.requireNamespacesGo(t, "while-scaled")

	s.upgrade(t, "adapter.podAnnotations.restarted=once")
	s.requireNamespacesGo(t, "after-upgrade")
	endLoad()

	s.removeRelease(t)
	s.requireNamespacesGo(t, "after-uninstall")
	s.awaitNoPods(t)
	s.requireLeft(t, before, slices.Concat(definitions(), []string{
		"autoscaling/v2/horizontalpodautoscalers default/" + plan.AutoscalerName(name),
		"pulsar-autoscaler.io/v1alpha1/autoscalingpolicies default/" + name,
	})...)
	s.removeNamespace(t, namespace)
}

// definitions outlive a release, with the policies.
func definitions() []string {
	return []string{
		"apiextensions.k8s.io/v1/customresourcedefinitions /autoscalingpolicies.pulsar-autoscaler.io",
		"apiextensions.k8s.io/v1/customresourcedefinitions /autoscalingpolicysets.pulsar-autoscaler.io",
		"apiregistration.k8s.io/v1/apiservices /v1alpha1.pulsar-autoscaler.io",
	}
}

// The load takes three replicas. What a busy machine adds to a call is little beside its service time.
const (
	serviceTime   = 200 * time.Millisecond
	rate          = 15
	leastReplicas = 3
	maxReplicas   = 20
	objective     = 30 * time.Second
)

// scales applies a policy and publishes until at least three replicas run. endLoad, or the end of the test, stops the
// load.
func (s *scene) scales(t *testing.T, f *stage.Function) (endLoad func()) {
	t.Helper()
	require.NoError(t, s.Client.Create(t.Context(), stage.NewPolicy(f.Name, 1, maxReplicas, objective)))
	endLoad = f.Load(t, load.Constant(rate))
	s.awaitReplicas(t, f, leastReplicas, maxReplicas)
	return endLoad
}

// upgrade upgrades the release to other values.
func (s *scene) upgrade(t *testing.T, values ...string) {
	t.Helper()
	args := append([]string{"upgrade", release, chart(t)}, s.flags(values...)...)
	s.helm(t, args...)
}

// awaitMetricsAPI returns once the aggregator reaches the adapter, which registers itself.
func (s *scene) awaitMetricsAPI(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.Cluster.WaitMetricsAPI(ctx))
}

// awaitReplicas returns once between from and to replicas run.
func (s *scene) awaitReplicas(t *testing.T, f *stage.Function, from, to int64) {
	t.Helper()
	s.Await(t, fmt.Sprintf("%d to %d replicas of %s", from, to, f.Name),
		func(ctx context.Context) (bool, string, error) {
			replicas, err := f.Replicas(ctx)
			if err != nil {
				return false, "", err
			}
			p, err := f.Policy(ctx)
			return replicas.Status >= from && replicas.Status <= to, fmt.Sprint(replicas, p.Status.Conditions), err
		})
}

// objects lists the objects of all API resources, except those that Kubernetes creates and deletes itself.
func (s *scene) objects(t *testing.T) (found []string) {
	t.Helper()
	s.Await(t, "all API resources to be listed", func(ctx context.Context) (_ bool, _ string, err error) {
		found, err = s.list(ctx)
		return err == nil, "", err // an API group may have gone meanwhile
	})
	return found
}

func (s *scene) list(ctx context.Context) (found []string, err error) {
	config := s.Cluster.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // about deprecated versions
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			resource := version.WithResource(list.APIResources[i].Name)
			if slices.Contains(transient(), resource.Resource) {
				continue
			}
			items, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", resource, err)
			}
			for j := range items.Items {
				found = append(found, fmt.Sprintf("%s/%s %s/%s", list.GroupVersion, resource.Resource,
					items.Items[j].GetNamespace(), items.Items[j].GetName()))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// transient are resources of which objects come and go with pods, or expire.
func transient() []string {
	return []string{"events", "pods", "endpoints", "endpointslices", "controllerrevisions", "replicasets"}
}

// requireLeft fails unless the objects of before and more are the only ones.
func (s *scene) requireLeft(t *testing.T, before []string, more ...string) {
	t.Helper()
	allowed := slices.Concat(before, more)
	var left []string
	s.Await(t, "all else to be gone", func(context.Context) (bool, string, error) {
		left = s.objects(t)
		surplus := slices.DeleteFunc(slices.Clone(left), func(one string) bool { return slices.Contains(allowed, one) })
		return len(surplus) == 0, strings.Join(surplus, "\n"), nil
	})
	require.Subset(t, left, more)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// fakeScales is an API server with one Rollout.
type fakeScales struct {
	requests int
	err      error
	unmapped bool
	unscaled bool
}

// serve has targets found there.
func (s *fakeScales) serve(c *Config) {
	mapper := meta.NewDefaultRESTMapper(nil)
	if !s.unmapped {
		mapper.Add(schema.FromAPIVersionAndKind(argo, "Rollout"), meta.RESTScopeNamespace)
		mapper.Add(cluster.GVK(cluster.KindDeployment), meta.RESTScopeNamespace)
	}
	c.Resources, c.Client = s, fake.NewClientBuilder().WithRESTMapper(mapper).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceGet: func(_ context.Context, _ client.Client, _ string,
			object, scale client.Object, _ ...client.SubResourceGetOption,
		) error {
			return s.get(object, scale)
		}}).Build()
}

func (s *fakeScales) get(object, scale client.Object) (err error) {
	s.requests++
	if s.err != nil {
		return s.err
	}
	scale.(*unstructured.Unstructured).Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(
		&autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), UID: "uid-rollout"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: 2},
			Status:     autoscalingv1.ScaleStatus{Replicas: 4, Selector: "app=resize"},
		})
	return err
}

func (s *fakeScales) ServerResourcesForGroupVersionWithContext(context.Context, string) (*metav1.APIResourceList,
	error,
) {
	list := &metav1.APIResourceList{}
	if !s.unscaled {
		list.APIResources = []metav1.APIResource{{Name: "rollouts/scale"}, {Name: "deployments/scale"}}
	}
	return list, nil
}

func rollouts() schema.GroupResource {
	return schema.GroupResource{Group: "argoproj.io", Resource: "rollouts"}
}

const argo = "argoproj.io/v1alpha1"

func deploymentPolicy() *v1alpha1.AutoscalingPolicy {
	return fixture.ConsumerPolicy("apps/v1", "Deployment")
}

func rolloutPolicy() *v1alpha1.AutoscalingPolicy { return fixture.ConsumerPolicy(argo, "Rollout") }

// problemOf is what a user has to fix.
func problemOf(t *testing.T, err error) *plan.Violation {
	t.Helper()
	var problem *plan.Violation
	require.ErrorAs(t, err, &problem)
	return problem
}

func TestFindConsumer(t *testing.T) {
	set := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	set.SetName("resize")
	set.SetNamespace(fixture.Namespace)
	set.SetResourceVersion("")
	fixture.SetCommand(t, set, []any{"consume"})
	owned := fixture.Deployment()
	fixture.SetOwner(owned, "flink.apache.org/v1", "FlinkDeployment", "jobs")
	unselected := fixture.Deployment()
	unselected.Object["spec"] = map[string]any{"replicas": int64(0)}
	tests := map[string]struct {
		policy  *v1alpha1.AutoscalingPolicy
		object  *unstructured.Unstructured
		scales  *fakeScales
		without []string
		want    plan.Target
		// unknown is why there is no target of a kind, or with a reason why it is not read.
		unknown, reason string
	}{
		"a Deployment": {
			policy: deploymentPolicy(), object: fixture.Deployment(),
			want: plan.Target{
				Replicas: new(int32(3)), Reported: new(int32(3)), PodSelector: "app=resize", UID: "uid-deployment",
			},
		},
		"a Deployment without a selector": {
			policy: deploymentPolicy(), object: unselected,
			want: plan.Target{Replicas: new(int32(0)), Reported: new(int32(3)), UID: "uid-deployment"},
		},
		"a Deployment of another controller": {
			policy: deploymentPolicy(), object: owned,
			want: plan.Target{
				Replicas: new(int32(3)), Reported: new(int32(3)), PodSelector: "app=resize", UID: "uid-deployment",
				Owner: "FlinkDeployment jobs",
			},
		},
		"a StatefulSet that no function worker created": {
			policy: fixture.ConsumerPolicy("apps/v1", "StatefulSet"), object: set,
			want: plan.Target{
				Replicas: new(int32(2)), Reported: new(int32(2)), UID: "553d87fe-9584-41eb-9ca5-dba26794e6be",
				PodSelector: "component=function,name=resize,namespace=default,tenant=public",
			},
		},
		"a Rollout, read from the API server": {
			policy: rolloutPolicy(), scales: &fakeScales{},
			want: plan.Target{
				Replicas: new(int32(2)), Reported: new(int32(4)), PodSelector: "app=resize", UID: "uid-rollout",
			},
		},
		"a Deployment that may not be listed": {
			policy: deploymentPolicy(), scales: &fakeScales{}, without: []string{cluster.KindDeployment},
			want: plan.Target{
				Replicas: new(int32(2)), Reported: new(int32(4)), PodSelector: "app=resize", UID: "uid-rollout",
			},
		},
		"an unknown kind": {
			policy: rolloutPolicy(), scales: &fakeScales{unmapped: true},
			unknown: "this cluster does not serve kind Rollout of argoproj.io/v1alpha1: install it",
		},
		"a kind without a scale subresource": {
			policy: rolloutPolicy(), scales: &fakeScales{unscaled: true},
			unknown: "kind Rollout of argoproj.io/v1alpha1 has no scale subresource",
		},
		"a Rollout that may not be read": {
			policy: rolloutPolicy(), scales: &fakeScales{err: apierrors.NewForbidden(rollouts(), "resize", errors.New("no"))},
			reason: v1alpha1.ReasonPermissionMissing,
			unknown: "Rollout resize may not be read: grant the adapter get on rollouts, and get and patch on rollouts/scale, of API group " +
				"argoproj.io in a ClusterRole, as rbac.deployments of the chart (deploy/rbac/deployments.yaml) does for " +
				"Deployments",
		},
		"a Rollout without replicas": {
			policy: rolloutPolicy(), scales: &fakeScales{err: apierrors.NewInternalError(errors.New(
				`the spec replicas field ".spec.replicas" does not exist`))},
			reason: v1alpha1.ReasonReplicasUnset,
			unknown: `Rollout resize does not set its replicas, and scaling starts from them (Internal error ` +
				`occurred: the spec replicas field ".spec.replicas" does not exist): set them`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if test.object != nil {
				objects = append(objects, test.object.DeepCopy())
			}
			targets := newTestTargets(t, objects, func(c *Config) {
				c.Installed = func(kind string) bool { return len(test.without) == 0 || kind != test.without[0] }
				if test.scales != nil {
					test.scales.serve(c)
				}
			})
			found, err := targets.Finder.Find(t.Context(), test.policy.Namespace, test.policy.Spec)
			want, ref := test.want, test.policy.Spec.ScaleTargetRef
			want.Ref, want.Scaled = ref, []v1alpha1.ScaleTargetRef{ref}
			if test.unknown != "" {
				require.ErrorContains(t, err, test.unknown)
				require.Equal(t, cmp.Or(test.reason, v1alpha1.ReasonTargetKindUnsupported), problemOf(t, err).Reason)
				if test.reason == "" {
					require.Nil(t, found)
				} else {
					require.Equal(t, &want, found)
				}
				return
			}
			require.NoError(t, err)
			if want.Owner == "" {
				want.Subscription = backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
				want.SubscriptionType = backlog.Shared
			}
			require.Equal(t, &want, found)
		})
	}
}

func TestFindMissingConsumer(t *testing.T) {
	gone := &fakeScales{err: apierrors.NewNotFound(rollouts(), "resize")}
	targets := newTestTargets(t, nil, gone.serve)
	for _, p := range []*v1alpha1.AutoscalingPolicy{deploymentPolicy(), rolloutPolicy()} {
		found, err := targets.Finder.Find(t.Context(), p.Namespace, p.Spec)
		require.NoError(t, err)
		require.Nil(t, found)
	}
	broken := newTestTargets(t, nil, (&fakeScales{err: errors.New("no route to host")}).serve)
	_, err := broken.Finder.Find(t.Context(), fixture.Namespace, rolloutPolicy().Spec)
	require.ErrorContains(t, err, "reading the scale of Rollout media/resize: no route to host")
}

func TestScaleSubresourceIsCached(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	api, p := &fakeScales{}, rolloutPolicy()
	targets := newTestTargets(t, nil, api.serve, func(c *Config) { c.Now = func() time.Time { return now } })
	find := func() {
		t.Helper()
		_, err := targets.Finder.Find(t.Context(), p.Namespace, p.Spec)
		require.NoError(t, err)
	}
	find()
	find()
	require.Equal(t, 1, api.requests)
	now = now.Add(scaleTTL)
	find()
	require.Equal(t, 2, api.requests)
	targets.Finder.Rewritten(p.Namespace, p.Spec.ScaleTargetRef)
	find()
	require.Equal(t, 3, api.requests, "after a write of its replicas")
	now = now.Add(lookupUnusedTTL)
	targets.Forget(now)
	require.Empty(t, targets.Finder.scales.known.known)
}

func TestDeclaredSubscription(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.AutoscalingPolicySpec)
		want   string
	}{
		"a pattern outside RE2": {func(s *v1alpha1.AutoscalingPolicySpec) {
			s.Subscription.Topics, s.Subscription.TopicsPattern = nil, "public/default/(?=a).*"
		}, "spec.subscription.topicsPattern: "},
		"no cluster": {
			func(s *v1alpha1.AutoscalingPolicySpec) { s.Pulsar = nil },
			"the admin URL of the Pulsar cluster is unknown: set spec.pulsar.adminURL of the policy",
		},
		"a pattern": {func(s *v1alpha1.AutoscalingPolicySpec) {
			s.Subscription.Topics, s.Subscription.TopicsPattern = nil, "public/default/in-.*"
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := deploymentPolicy()
			test.change(&p.Spec)
			targets := newTestTargets(t, []client.Object{fixture.Deployment()})
			found, wrong := targets.Finder.Find(t.Context(), p.Namespace, p.Spec)
			subscription, err := targets.Finder.Declared(t.Context(), p.Namespace, p.Spec)
			if test.want != "" {
				require.Equal(t, problemOf(t, err), problemOf(t, wrong))
				require.ErrorContains(t, err, test.want)
				return
			}
			require.NoError(t, err)
			require.NoError(t, wrong)
			require.Equal(t, []string{"persistent://public/default/in-.*"}, subscription.Patterns)
			require.Equal(t, subscription, found.Subscription)
		})
	}
}

func TestSubscriptionOfAPolicyTakesPrecedence(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["input"] = map[string]any{"topics": []any{"elsewhere"}}
	fixture.Spec(function)["maxReplicas"] = int64(9)
	p := fixture.ConsumerPolicy("compute.functionmesh.io/v1alpha1", "Function")
	p.Spec.Pulsar = nil
	targets := newTestTargets(t, []client.Object{function, fixture.ConfigMap()})
	found, err := targets.Finder.Find(t.Context(), p.Namespace, p.Spec)
	require.NoError(t, err)
	require.Equal(t, new(int32(9)), found.MaxReplicas, "the other fields of the Function count")
	want := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", fixture.Topic)
	want.Workload = backlog.Object{Kind: "Function", Namespace: p.Namespace, Name: "resize"}
	require.Equal(t, want, found.Subscription)
	subscription, err := targets.Finder.Declared(t.Context(), p.Namespace, p.Spec)
	require.NoError(t, err)
	require.Equal(t, want, subscription)
}

func TestDeploymentRollout(t *testing.T) {
	for name, test := range map[string]struct {
		updated int64
		paused  bool
		want    bool
	}{
		"some pods are old":                           {1, false, true},
		"all pods are new":                            {3, false, false},
		"it is paused, and some pods stay old for it": {1, true, false},
	} {
		deployment := fixture.Deployment()
		deployment.Object["status"] = map[string]any{"replicas": int64(3), "updatedReplicas": test.updated}
		fixture.Spec(deployment)["paused"] = test.paused
		targets := newTestTargets(t, []client.Object{deployment}, func(c *Config) {
			c.Installed = func(kind string) bool { return kind == cluster.KindDeployment }
		})
		p := deploymentPolicy()
		found, err := targets.Finder.Find(t.Context(), p.Namespace, p.Spec)
		require.NoError(t, err)
		described, err := targets.Finder.Describe(t.Context(), p.Namespace, found)
		require.NoError(t, err)
		require.Equal(t, test.want, described.Updating, name)
		require.Empty(t, described.Disturbances)
	}
}

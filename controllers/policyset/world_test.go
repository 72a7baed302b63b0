// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testCluster is an API server that counts writes, and a clock that stands still.
type testCluster struct {
	t          *testing.T
	client     client.Client
	reconciler *Reconciler
	recorder   *events.FakeRecorder
	now        time.Time
	// missing are kinds that are not installed.
	missing []string
	// mu guards writes: policies are written side by side.
	mu     sync.Mutex
	writes []string
	// applyFails is what applies answer.
	applyFails error
}

func newTestCluster(t *testing.T, objects ...client.Object) *testCluster {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := &testCluster{t: t, now: time.Unix(1_800_000_000, 0)}
	c.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.AutoscalingPolicy{}, &v1alpha1.AutoscalingPolicySet{}).
		WithInterceptorFuncs(c.counting()).Build()
	c.restart()
	return c
}

// restart replaces the process: what it kept in memory is gone, what is written stays.
func (c *testCluster) restart() {
	c.t.Helper()
	c.recorder = events.NewFakeRecorder(100)
	var err error
	c.reconciler, err = New(Config{
		Client: c.client, Objects: c.client, Recorder: c.recorder, Registerer: prometheus.NewRegistry(),
		Installed: func(kind string) bool { return !slices.Contains(c.missing, kind) },
		Clock:     func() time.Time { return c.now },
	})
	require.NoError(c.t, err)
}

// counting keeps every write that reaches the API server.
func (c *testCluster) counting() interceptor.Funcs {
	add := func(write string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.writes = append(c.writes, write)
	}
	return interceptor.Funcs{
		Apply: func(ctx context.Context, under client.WithWatch, obj runtime.ApplyConfiguration,
			opts ...client.ApplyOption,
		) error {
			add("apply")
			if c.applyFails != nil {
				return c.applyFails
			}
			return under.Apply(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, under client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			add("delete " + obj.GetName())
			return under.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, under client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			add("patch " + sub)
			return under.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}
}

// reconcile a set; it returns the writes, in order of their names.
func (c *testCluster) reconcile(name string) ([]string, reconcile.Result) {
	c.t.Helper()
	c.writes = nil
	result, err := c.reconciler.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: key(name)})
	require.NoError(c.t, err)
	slices.Sort(c.writes)
	return c.writes, result
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: fixture.Namespace, Name: name}
}

func (c *testCluster) set(name string) *v1alpha1.AutoscalingPolicySet {
	c.t.Helper()
	var set v1alpha1.AutoscalingPolicySet
	require.NoError(c.t, c.client.Get(c.t.Context(), key(name), &set))
	return &set
}

func (c *testCluster) policy(name string) *v1alpha1.AutoscalingPolicy {
	c.t.Helper()
	var p v1alpha1.AutoscalingPolicy
	require.NoError(c.t, c.client.Get(c.t.Context(), key(name), &p))
	return &p
}

// governed are the targets of a set's policies.
func (c *testCluster) governed(name string) []string {
	c.t.Helper()
	set := c.set(name)
	var list v1alpha1.AutoscalingPolicyList
	require.NoError(c.t, c.client.List(c.t.Context(), &list))
	var names []string
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], set) {
			names = append(names, plan.ShortName(list.Items[i].Spec))
		}
	}
	slices.Sort(names)
	return names
}

// condition returns "True/Reason", and its message.
func (c *testCluster) condition(name, condition string) (string, string) {
	c.t.Helper()
	found := meta.FindStatusCondition(c.set(name).Status.Conditions, condition)
	require.NotNil(c.t, found, condition)
	return string(found.Status) + "/" + found.Reason, found.Message
}

// recorded returns and forgets the events.
func (c *testCluster) recorded() []string {
	var all []string
	for {
		select {
		case e := <-c.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// editSet and editPolicy change an object as a user would.
func (c *testCluster) editSet(name string, change func(*v1alpha1.AutoscalingPolicySet)) {
	c.t.Helper()
	set := c.set(name)
	change(set)
	set.Generation++
	require.NoError(c.t, c.client.Update(c.t.Context(), set))
}

func (c *testCluster) editPolicy(name string, change func(*v1alpha1.AutoscalingPolicy)) {
	c.t.Helper()
	p := c.policy(name)
	change(p)
	p.Generation++
	require.NoError(c.t, c.client.Update(c.t.Context(), p))
}

// setReady writes the condition Ready of a policy.
func (c *testCluster) setReady(name string, status metav1.ConditionStatus, reason, message string) {
	c.t.Helper()
	p := c.policy(name)
	meta.SetStatusCondition(&p.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message})
	require.NoError(c.t, c.client.Status().Update(c.t.Context(), p))
}

// relabel an object.
func (c *testCluster) relabel(object *unstructured.Unstructured, labels map[string]string) {
	c.t.Helper()
	require.NoError(c.t, c.client.Get(c.t.Context(), client.ObjectKeyFromObject(object), object))
	object.SetLabels(labels)
	require.NoError(c.t, c.client.Update(c.t.Context(), object))
}

func media() map[string]string { return map[string]string{"team": "media"} }

// labelled is a Function that fixture.PolicySet selects.
func labelled(name string) *unstructured.Unstructured {
	f := fixture.Function()
	f.SetName(name)
	f.SetLabels(media())
	return f
}

func labelledMesh() *unstructured.Unstructured {
	mesh := fixture.Mesh()
	mesh.SetLabels(media())
	return mesh
}

// policyOf is the name of the set's policy for a Function.
func policyOf(set, function string) string {
	return plan.SetPolicyName(set, v1alpha1.ScaleTargetRef{Kind: cluster.KindFunction, Name: function})
}

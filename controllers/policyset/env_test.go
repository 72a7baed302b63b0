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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testEnv is a fake API server that counts writes, and a manual clock.
type testEnv struct {
	t          *testing.T
	client     client.Client
	reconciler *Reconciler
	recorder   *events.FakeRecorder
	now        time.Time
	// missing are kinds that are not installed.
	missing []string
	// mu guards writes: policies are written concurrently.
	mu     sync.Mutex
	writes []string
	// applyFails is the error of applies; nil for none.
	applyFails error
	// applied is the generation of policies that are applied.
	applied int64
}

func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	env := &testEnv{t: t, now: time.Unix(1_800_000_000, 0)}
	env.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.AutoscalingPolicy{}, &v1alpha1.AutoscalingPolicySet{}).
		WithInterceptorFuncs(env.counting()).Build()
	env.restart()
	return env
}

// restart replaces the process: its memory is lost, its writes stay.
func (env *testEnv) restart() {
	env.t.Helper()
	env.recorder = events.NewFakeRecorder(100)
	var err error
	env.reconciler, err = New(Config{
		Client: env.client, Recorder: env.recorder, Registerer: prometheus.NewRegistry(),
		Objects: target.NewReader(env.client, func(kind string) bool { return !slices.Contains(env.missing, kind) }),
		Clock:   func() time.Time { return env.now },
	})
	require.NoError(env.t, err)
}

// counting records every write at the API server.
func (env *testEnv) counting() interceptor.Funcs {
	add := func(write string) {
		env.mu.Lock()
		defer env.mu.Unlock()
		env.writes = append(env.writes, write)
	}
	return interceptor.Funcs{
		Apply: func(ctx context.Context, under client.WithWatch, obj runtime.ApplyConfiguration,
			opts ...client.ApplyOption,
		) error {
			add("apply")
			if env.applyFails != nil {
				return env.applyFails
			}
			err := under.Apply(ctx, obj, opts...)
			if answer, is := obj.(interface{ SetGeneration(generation int64) }); is { // the fake one counts none
				answer.SetGeneration(env.applied)
			}
			return err
		},
		Delete: func(ctx context.Context, under client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			add("delete " + obj.GetName())
			return fixture.Delete(ctx, under, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, under client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			add("patch " + sub)
			return under.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}
}

// reconcile reconciles a set and returns the sorted writes.
func (env *testEnv) reconcile(name string) ([]string, reconcile.Result) {
	env.t.Helper()
	env.writes = nil
	result, err := env.reconciler.Reconcile(env.t.Context(), reconcile.Request{NamespacedName: key(name)})
	require.NoError(env.t, err)
	slices.Sort(env.writes)
	return env.writes, result
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: fixture.Namespace, Name: name}
}

func (env *testEnv) set(name string) *v1alpha1.AutoscalingPolicySet {
	env.t.Helper()
	var set v1alpha1.AutoscalingPolicySet
	require.NoError(env.t, env.client.Get(env.t.Context(), key(name), &set))
	return &set
}

func (env *testEnv) policy(name string) *v1alpha1.AutoscalingPolicy {
	env.t.Helper()
	var p v1alpha1.AutoscalingPolicy
	require.NoError(env.t, env.client.Get(env.t.Context(), key(name), &p))
	return &p
}

// governed are the targets of a set's policies.
func (env *testEnv) governed(name string) []string {
	env.t.Helper()
	set := env.set(name)
	var list v1alpha1.AutoscalingPolicyList
	require.NoError(env.t, env.client.List(env.t.Context(), &list))
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
func (env *testEnv) condition(name, condition string) (string, string) {
	env.t.Helper()
	found := meta.FindStatusCondition(env.set(name).Status.Conditions, condition)
	require.NotNil(env.t, found, condition)
	return string(found.Status) + "/" + found.Reason, found.Message
}

// recorded returns and drops the events.
func (env *testEnv) recorded() []string { return fixture.Events(env.recorder) }

// editSet changes a set like a user.
func (env *testEnv) editSet(name string, change func(*v1alpha1.AutoscalingPolicySet)) {
	env.t.Helper()
	set := env.set(name)
	change(set)
	set.Generation++
	require.NoError(env.t, env.client.Update(env.t.Context(), set))
}

// editPolicy changes a policy like a user.
func (env *testEnv) editPolicy(name string, change func(*v1alpha1.AutoscalingPolicy)) {
	env.t.Helper()
	p := env.policy(name)
	change(p)
	p.Generation++
	require.NoError(env.t, env.client.Update(env.t.Context(), p))
}

// setReady writes the condition Ready of a policy.
func (env *testEnv) setReady(name string, status metav1.ConditionStatus, reason, message string) {
	env.t.Helper()
	p := env.policy(name)
	meta.SetStatusCondition(&p.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message})
	require.NoError(env.t, env.client.Status().Update(env.t.Context(), p))
}

// relabel replaces the labels of an object.
func (env *testEnv) relabel(object *unstructured.Unstructured, labels map[string]string) {
	env.t.Helper()
	require.NoError(env.t, env.client.Get(env.t.Context(), client.ObjectKeyFromObject(object), object))
	object.SetLabels(labels)
	require.NoError(env.t, env.client.Update(env.t.Context(), object))
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
func policyOf(setName, function string) string {
	return set.PolicyName(setName, v1alpha1.ScaleTargetRef{Kind: cluster.KindFunction, Name: function})
}

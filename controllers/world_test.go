// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const (
	testInterval = 15 * time.Second
)

// otherAutoscaler is somebody's HorizontalPodAutoscaler on the given target.
func otherAutoscaler(apiVersion, kind, name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "theirs"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: apiVersion, Kind: kind,
				Name: name,
			}, MaxReplicas: 9,
		},
	}
}

// testWorld is an API server that counts writes, a store without a poller, and a clock that stands still.
type testWorld struct {
	t          *testing.T
	client     client.Client
	store      *backlog.Store
	reconciler *PolicyReconciler
	recorder   *events.FakeRecorder
	registry   *prometheus.Registry
	now        time.Time
	installed  bool
	// pods are what the next process knows of pods; nil for one that leaves them alone.
	pods Health
	// worker of the next process; nil for one that leaves function workers alone.
	worker *fixture.Worker
	// configure changes how the next process finds targets; nil for no change.
	configure func(*target.Config)
	// abilities of the cluster.
	abilities plan.Capabilities
	// mu guards writes.
	mu sync.Mutex
	// writes in order, such as "apply HorizontalPodAutoscaler".
	writes []string
	// scaleFails is what the next writes of replicas answer, and written what was written.
	scaleFails error
	written    []int64
	// applyFails is what the next applies answer, patchFails patches of anything but policies.
	applyFails, patchFails error
	// crashAt is after how many writes the process ends, 0 for never, and whether the last one arrives.
	crashAt int
	arrives bool
	// passing is true while the process writes, crashed when it has ended.
	passing, crashed bool
}

func newTestWorld(t *testing.T, objects ...client.Object) *testWorld {
	t.Helper()
	scheme, err := informer.Scheme()
	require.NoError(t, err)
	w := &testWorld{
		t: t, now: time.Unix(1_800_000_000, 0), recorder: events.NewFakeRecorder(100), installed: true,
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(cluster.GVK(cluster.KindDeployment), meta.RESTScopeNamespace)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.AutoscalingPolicy{}, &autoscalingv2.HorizontalPodAutoscaler{}).
		WithIndex(&v1alpha1.AutoscalingPolicy{}, target.IndexScaleTarget, target.IndexPolicy).
		WithIndex(&v1alpha1.AutoscalingPolicy{}, target.IndexSubscription, target.IndexDeclared).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, target.IndexScaleTarget, target.IndexAutoscaler)
	for _, kind := range cluster.CachedKinds() {
		if field, by := target.IndexOf(kind); field != "" {
			builder = builder.WithIndex(cluster.NewUnstructured(kind), field, by)
		}
	}
	w.client = builder.WithInterceptorFuncs(w.counting()).Build()
	w.store, err = backlog.NewStore(10*time.Second, time.Minute)
	require.NoError(t, err)
	w.restart()
	return w
}

// restart replaces the process: what it kept in memory is gone, what is written stays.
func (w *testWorld) restart() {
	w.t.Helper()
	w.registry = prometheus.NewRegistry()
	finding := target.Config{
		Workloads: w.client, Installed: func(string) bool { return w.installed }, Objects: w.client,
		FunctionCredentials: target.UseFunctionCredentials, InstanceMetrics: target.NoInstanceMetrics, Now: w.clock,
	}
	if w.worker != nil {
		finding.Worker, finding.Consumers = w.worker, target.ConsumerCount(w.store, w.clock)
	}
	if w.configure != nil {
		w.configure(&finding)
	}
	credentials, err := informer.NewCredentials(w.client, finding.FunctionCredentials, finding.OwnCredentials, w.clock)
	require.NoError(w.t, err)
	finding.Credentials = credentials
	targets, err := target.New(finding)
	require.NoError(w.t, err)
	reconciling := ReconcilerConfig{
		Client: w.client, Recorder: w.recorder, Store: w.store, Targets: targets, Pods: w.pods,
		PollInterval: testInterval, Clock: w.clock, Registerer: w.registry,
		Abilities: func() plan.Capabilities { return w.abilities },
	}
	if w.worker != nil {
		reconciling.Worker = w.worker
	}
	w.reconciler, err = NewPolicyReconciler(reconciling)
	require.NoError(w.t, err)
}

func (w *testWorld) clock() time.Time { return w.now }

// counting notes every write that reaches the API server.
func (w *testWorld) counting() interceptor.Funcs {
	add := func(write string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes = append(w.writes, write)
	}
	note := func(verb string, object runtime.Object) { add(fmt.Sprintf("%s %T", verb, object)) }
	return interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
			opts ...client.ApplyOption,
		) error {
			add("apply")
			if w.applyFails != nil {
				return w.applyFails
			}
			return w.crashing(func() error { return c.Apply(ctx, obj, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			note("create", obj)
			return w.crashing(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			note("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			opts ...client.PatchOption,
		) error {
			note("patch", obj)
			if _, ours := obj.(*v1alpha1.AutoscalingPolicy); w.patchFails != nil && !ours {
				return w.patchFails
			}
			return w.crashing(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			add("delete " + obj.GetName())
			return w.crashing(func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			if sub == "scale" {
				return w.scaled(ctx, c, obj, p)
			}
			add("patch " + sub)
			return w.crashing(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	}
}

// crashing writes, unless the process is to end with this write: then nothing that follows in the pass is written
// either, and another process begins.
func (w *testWorld) crashing(write func() error) error {
	if !w.passing || w.crashAt == 0 {
		return write()
	}
	if w.crashAt > 1 {
		w.crashAt--
		return write()
	}
	var err error
	if w.arrives && !w.crashed {
		err = write()
	}
	w.crashed = true
	return errors.Join(err, errors.New("the process has ended"))
}

// reconcile runs one pass and returns the writes it made.
func (w *testWorld) reconcile() []string {
	w.t.Helper()
	w.writes = nil
	_, err := w.reconciler.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.NoError(w.t, err)
	return w.writes
}

// answer is Pulsar's: so many messages wait, of so many published ever.
func (w *testWorld) answer(waiting, published int64) {
	w.store.Record(
		backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fixture.Sample(w.now, waiting, published),
	)
}

// settle takes the policy to its first decision, with so many messages waiting.
func (w *testWorld) settle(waiting int64) {
	w.t.Helper()
	w.reconcile()
	w.answer(waiting, 10_000)
	w.reconcile()
	require.NotNil(w.t, w.policy().Status.DesiredReplicas)
}

func (w *testWorld) after(d time.Duration) { w.now = w.now.Add(d) }

func (w *testWorld) policy() *v1alpha1.AutoscalingPolicy {
	w.t.Helper()
	var p v1alpha1.AutoscalingPolicy
	require.NoError(w.t, w.client.Get(w.t.Context(), fixture.Key(), &p))
	return &p
}

// condition returns "True/Reason", and its message.
func (w *testWorld) condition(name string) (string, string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.policy().Status.Conditions, name)
	if c == nil {
		return "", ""
	}
	return string(c.Status) + "/" + c.Reason, c.Message
}

// autoscaler returns ours, or nil.
func (w *testWorld) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	w.t.Helper()
	var hpa autoscalingv2.HorizontalPodAutoscaler
	err := w.client.Get(w.t.Context(),
		types.NamespacedName{Namespace: fixture.Namespace, Name: plan.AutoscalerName("resize")}, &hpa)
	require.NoError(w.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return &hpa
}

// events returns and forgets what was recorded.
func (w *testWorld) events() []string {
	var all []string
	for {
		select {
		case e := <-w.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// edit changes the policy as its user would.
func (w *testWorld) edit(change func(*v1alpha1.AutoscalingPolicy)) {
	w.t.Helper()
	p := w.policy()
	change(p)
	p.Generation++
	require.NoError(w.t, w.client.Update(w.t.Context(), p))
}

func (w *testWorld) metric(name string) int {
	w.t.Helper()
	count, err := testutil.GatherAndCount(w.registry, name)
	require.NoError(w.t, err)
	return count
}

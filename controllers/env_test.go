// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const (
	testInterval = 15 * time.Second
)

func testLease() types.NamespacedName {
	return types.NamespacedName{Namespace: "pulsar-autoscaler", Name: "adapter"}
}

// otherAutoscaler is a user's HorizontalPodAutoscaler for the given target.
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

// testEnv is an API server that counts writes, a store without a poller, and a manual clock.
type testEnv struct {
	t          *testing.T
	client     client.Client
	store      *backlog.Store
	reconciler *PolicyReconciler
	recorder   *events.FakeRecorder
	registry   *prometheus.Registry
	now        time.Time
	installed  bool
	// pods is the pod health that the next process reads; nil to ignore pods.
	pods Health
	// worker of the next process; nil without function workers.
	worker *fixture.Worker
	// configure changes how the next process finds targets; nil for the default.
	configure    func(*target.Config)
	capabilities plan.Capabilities
	// mu guards writes.
	mu sync.Mutex
	// writes in order, such as "apply HorizontalPodAutoscaler".
	writes []string
	// scaleFails is the error of the next writes of replicas; written are the replicas written.
	scaleFails error
	written    []int64
	// statusTakes is how long a status takes to write, in a bubble of synctest.
	statusTakes time.Duration
	// createFails is the error of the next creates.
	createFails error
	// applyFails is the error of the next applies, patchFails of patches of anything but policies.
	applyFails, patchFails error
	// readFails is the error of reads of the target; reads is called before each, unless nil.
	readFails error
	reads     func()
	managed   managedFields
	// crashAt is the number of writes after which the process ends, 0 for never, and whether the last one arrives.
	crashAt int
	arrives bool
	// passing is true while the process writes, crashed once it has ended.
	passing, crashed bool
	// late is a cache that lags, from which is read what is not live; nil for one that does not. passOf sets it from
	// before, the caches of earlier passes, if lags.
	late   client.Client
	before []client.Client
	lags   bool
}

func newTestEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	scheme, err := informer.Scheme()
	require.NoError(t, err)
	env := &testEnv{
		t: t, now: time.Unix(1_800_000_000, 0), recorder: events.NewFakeRecorder(100), installed: true,
	}
	env.client = server(scheme, objects...).WithInterceptorFuncs(env.counting()).Build()
	env.store, err = backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
	require.NoError(t, err)
	env.restart()
	return env
}

// server is a fake API server.
func server(scheme *runtime.Scheme, objects ...client.Object) *fake.ClientBuilder {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(cluster.GVK(cluster.KindDeployment), meta.RESTScopeNamespace)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.AutoscalingPolicy{}, &autoscalingv2.HorizontalPodAutoscaler{}).
		WithIndex(&v1alpha1.AutoscalingPolicy{}, target.IndexScaleTarget, target.IndexPolicy).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, target.IndexScaleTarget, target.IndexAutoscaler)
	for _, kind := range cluster.CachedKinds() {
		if field, by := target.IndexOf(kind); field != "" {
			builder = builder.WithIndex(cluster.NewUnstructured(kind), field, by)
		}
	}
	return builder
}

// restart replaces the process: its memory is lost, the API objects stay.
func (env *testEnv) restart() {
	env.t.Helper()
	env.registry = prometheus.NewRegistry()
	finding := target.Config{
		Workloads: env.client, Installed: func(string) bool { return env.installed }, Objects: env.client,
		FunctionCredentials: target.UseFunctionCredentials, Now: env.clock,
	}
	if env.worker != nil {
		finding.Worker, finding.Consumers = env.worker, target.ConsumerCount(env.store, env.clock)
	}
	if env.configure != nil {
		env.configure(&finding)
	}
	targets, err := target.New(finding)
	require.NoError(env.t, err)
	reconciling := reconcilerConfig{
		Config: Config{
			Config: informer.Config{
				Store: env.store, PollInterval: testInterval, Clock: env.clock, Lease: testLease(),
			},
			PolicyMetrics: metrics.Full, Registerer: env.registry,
		},
		Client: env.client, Live: env.client, Recorder: env.recorder, Targets: targets, Pods: env.pods,
		Capabilities: func() plan.Capabilities { return env.capabilities },
	}
	if env.worker != nil {
		reconciling.Worker = env.worker
	}
	env.reconciler = newPolicyReconciler(reconciling)
}

func (env *testEnv) clock() time.Time {
	if env.now.IsZero() {
		return time.Now() // of a synctest bubble
	}
	return env.now
}

// counting records every write that reaches the API server.
func (env *testEnv) counting() interceptor.Funcs {
	add := func(write string) {
		env.mu.Lock()
		defer env.mu.Unlock()
		env.writes = append(env.writes, write)
	}
	note := func(verb string, object runtime.Object) { add(fmt.Sprintf("%s %T", verb, object)) }
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if env.late != nil {
				return env.late.List(ctx, list, opts...)
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			opts ...client.GetOption,
		) error {
			if object.GetObjectKind().GroupVersionKind().Kind == cluster.KindFunction {
				if env.reads != nil {
					env.reads()
				}
				if env.readFails != nil {
					return env.readFails
				}
			}
			return env.live(ctx, c, key, object, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
			opts ...client.ApplyOption,
		) error {
			dry := len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0
			add(map[bool]string{false: "apply", true: "dry run"}[dry])
			if env.applyFails != nil || dry { // the fake API server would carry it out
				return env.applyFails
			}
			return env.crashing(func() error { return c.Apply(ctx, obj, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			note("create", obj)
			if env.createFails != nil && env.passing {
				return env.createFails
			}
			return env.crashing(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			note("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			opts ...client.PatchOption,
		) error {
			note("patch", obj)
			if _, ours := obj.(*v1alpha1.AutoscalingPolicy); env.patchFails != nil && !ours {
				return env.patchFails
			}
			return env.crashing(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			add("delete " + obj.GetName())
			return env.crashing(func() error { return fixture.Delete(ctx, c, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			if sub == "scale" {
				return env.scaled(ctx, c, obj, p)
			}
			add("patch " + sub)
			time.Sleep(env.statusTakes)
			return env.crashing(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	}
}

// crashing writes, unless the process ends at this write: then the rest of the reconcile writes nothing, and a new
// process begins.
func (env *testEnv) crashing(write func() error) error {
	if !env.passing || env.crashAt == 0 {
		return write()
	}
	if env.crashAt > 1 {
		env.crashAt--
		return write()
	}
	var err error
	if env.arrives && !env.crashed {
		err = write()
	}
	env.crashed = true
	return errors.Join(err, errors.New("the process has ended"))
}

// reconcile runs one reconcile and returns its writes.
func (env *testEnv) reconcile() []string {
	env.t.Helper()
	env.writes = nil
	_, err := env.reconciler.Reconcile(env.t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.NoError(env.t, err)
	return env.writes
}

// answer stores a broker response: the backlog, and the messages published so far.
func (env *testEnv) answer(waiting, published int64) {
	env.store.Record(
		backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic},
		fixture.Sample(env.now, waiting, published),
	)
}

// firstDecision reconciles until the first decision, with the given backlog.
func (env *testEnv) firstDecision(waiting int64) {
	env.t.Helper()
	env.reconcile()
	env.answer(waiting, 10_000)
	env.reconcile()
	require.NotNil(env.t, env.policy().Status.DesiredReplicas)
}

func (env *testEnv) after(d time.Duration) { env.now = env.now.Add(d) }

func (env *testEnv) policy() *v1alpha1.AutoscalingPolicy {
	env.t.Helper()
	var p v1alpha1.AutoscalingPolicy
	require.NoError(env.t, env.client.Get(env.t.Context(), fixture.Key(), &p))
	return &p
}

// condition returns "True/Reason", and its message.
func (env *testEnv) condition(name string) (string, string) {
	env.t.Helper()
	c := meta.FindStatusCondition(env.policy().Status.Conditions, name)
	if c == nil {
		return "", ""
	}
	return string(c.Status) + "/" + c.Reason, c.Message
}

// autoscaler returns our HorizontalPodAutoscaler, or nil.
func (env *testEnv) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	env.t.Helper()
	var hpa autoscalingv2.HorizontalPodAutoscaler
	err := env.client.Get(env.t.Context(),
		types.NamespacedName{Namespace: fixture.Namespace, Name: plan.AutoscalerName("resize")}, &hpa)
	require.NoError(env.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return &hpa
}

// events returns the recorded events and clears them.
func (env *testEnv) events() []string { return fixture.Events(env.recorder) }

// edit changes the policy like a user.
func (env *testEnv) edit(change func(*v1alpha1.AutoscalingPolicy)) {
	env.t.Helper()
	p := env.policy()
	change(p)
	p.Generation++
	require.NoError(env.t, env.client.Update(env.t.Context(), p))
}

func (env *testEnv) metric(name string) int {
	env.t.Helper()
	all := prometheus.Gatherers{env.registry, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return slices.Collect(env.reconciler.PolicyMetrics.Families()), nil
	})}
	count, err := testutil.GatherAndCount(all, name)
	require.NoError(env.t, err)
	return count
}

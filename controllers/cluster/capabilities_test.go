// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// testService is the adapter's Service.
func testService() types.NamespacedName {
	return types.NamespacedName{Namespace: "pulsar-autoscaler", Name: "adapter"}
}

// pointing is an APIService, such as v1beta1.custom.metrics.k8s.io, that names a Service; "" is the API server itself.
func pointing(name string, priority int32, service string) *apiregistrationv1.APIService {
	version, group, _ := strings.Cut(name, ".")
	object := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: group, Version: version, VersionPriority: priority, CABundle: []byte("secret"),
		},
		Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{
			{Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionFalse},
		}},
	}
	if namespace, name, found := strings.Cut(service, "/"); found {
		object.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: new(int32(443))}
	}
	return object
}

func TestServerOfCustomMetrics(t *testing.T) {
	const ours, theirs = "pulsar-autoscaler/adapter", "monitoring/prometheus-adapter"
	const older, newer = "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"
	tests := map[string]struct {
		services []*apiregistrationv1.APIService
		want     string
	}{
		"no server without APIServices": {nil, "no server"},
		"no server of another group": {[]*apiregistrationv1.APIService{pointing("v1beta1.external.metrics.k8s.io",
			100, theirs)}, "no server"},
		"the adapter, although unavailable": {[]*apiregistrationv1.APIService{
			pointing(older, 100, ours),
			pointing(newer, 200, ours),
		}, "the adapter"},
		"the adapter with the older version alone": {
			[]*apiregistrationv1.APIService{pointing(older, 100, ours)}, "the adapter",
		},
		"another server with the older version alone": {
			[]*apiregistrationv1.APIService{pointing(older, 100, theirs)},
			"Service " + theirs,
		},
		"the server of the preferred version": {[]*apiregistrationv1.APIService{
			pointing(older, 100, ours),
			pointing(newer, 200, theirs),
		}, "Service " + theirs},
		"the adapter when the other's version is not preferred": {[]*apiregistrationv1.APIService{
			pointing(older, 100, theirs),
			pointing(newer, 200, ours),
		}, "the adapter"},
		"by priority rather than by version": {[]*apiregistrationv1.APIService{
			pointing(older, 300, theirs),
			pointing(newer, 200, ours),
		}, "Service " + theirs},
		"by version where priorities are equal": {[]*apiregistrationv1.APIService{
			pointing(older, 100, theirs),
			pointing(newer, 100, ours),
		}, "the adapter"},
		"a Service of our name elsewhere": {
			[]*apiregistrationv1.APIService{pointing(newer, 200, "staging/adapter")},
			"Service staging/adapter",
		},
		"another Service of our namespace": {[]*apiregistrationv1.APIService{pointing(newer, 200,
			"pulsar-autoscaler/old")}, "Service pulsar-autoscaler/old"},
		"the API server, with kinds of its own": {
			[]*apiregistrationv1.APIService{pointing(newer, 200, "")},
			"the API server itself",
		},
		"no server of an unknown version alone": {[]*apiregistrationv1.APIService{pointing("v1.custom.metrics.k8s.io", 300,
			theirs)}, "no server"},
		"the adapter and an unknown version": {[]*apiregistrationv1.APIService{pointing("v1.custom.metrics.k8s.io", 300,
			theirs), pointing(newer, 200, ours)}, "the adapter"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := newFakeServices(t, tt.services...)
			got, err := serverOf(t.Context(), cluster, CustomMetrics, testService())
			require.NoError(t, err)
			require.Equal(t, tt.want, got.String())
		})
	}
}

func TestTransformAPIService(t *testing.T) {
	service := pointing("v1beta1.custom.metrics.k8s.io", 100, "a/b")
	service.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "helm"}}
	kept, err := transformAPIService(service)
	require.NoError(t, err)
	require.Equal(t, &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1beta1.custom.metrics.k8s.io"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "custom.metrics.k8s.io", Version: "v1beta1", VersionPriority: 100,
			Service: &apiregistrationv1.ServiceReference{Namespace: "a", Name: "b", Port: new(int32(443))},
		},
	}, kept)
}

// fakeServer is an API server that receives dry runs.
type fakeServer struct {
	mu sync.Mutex // guards all below
	// tolerance is its feature gate.
	tolerance bool
	// fails is its error; nil for none.
	fails    error
	requests int
}

func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *fakeServer) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *fakeServer) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	var dry client.CreateOptions
	dry.ApplyOptions(options)
	hpa, isHPA := object.(*autoscalingv2.HorizontalPodAutoscaler)
	switch {
	case !isHPA || len(dry.DryRun) != 1 || hpa.Namespace != "pulsar-autoscaler":
		return errors.New("not a dry run of an autoscaler in the adapter's namespace")
	case s.fails != nil:
		return s.fails
	}
	if !s.tolerance {
		hpa.Spec.Behavior.ScaleUp.Tolerance, hpa.Spec.Behavior.ScaleDown.Tolerance = nil, nil
	}
	return nil
}

func invalid(path ...string) error {
	at := field.NewPath(path[0], path[1:]...)
	return apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, "pap-probe-",
		field.ErrorList{
			field.Invalid(at, 0, "must be greater than or equal to 1"),
		})
}

func TestKeepsTolerance(t *testing.T) {
	tests := map[string]struct {
		server *fakeServer
		want   bool
		fails  string
	}{
		"a current server keeps it":     {&fakeServer{tolerance: true}, true, ""},
		"an old server drops it":        {&fakeServer{}, false, ""},
		"a server that refuses a field": {&fakeServer{fails: invalid("spec", "metrics")}, false, "spec.metrics"},
		"a missing permission": {
			&fakeServer{fails: apierrors.NewForbidden(schema.GroupResource{Resource: "horizontalpodautoscalers"}, "",
				errors.New("no"))},
			false,
			"creating a HorizontalPodAutoscaler in namespace pulsar-autoscaler as a dry run: ",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := keepsTolerance(t.Context(), tt.server, "pulsar-autoscaler")
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// fakeServices are APIServices in the cache, once it has synced.
type fakeServices struct {
	cache.Cache
	informers *informertest.FakeInformers
	api       client.Client
	// unread means that the cache never syncs.
	unread bool
}

// unreadInformer never syncs.
type unreadInformer struct{ cache.Informer }

func (unreadInformer) HasSynced() bool { return false }

func (c *fakeServices) GetInformer(ctx context.Context, object client.Object,
	options ...cache.InformerGetOption,
) (cache.Informer, error) {
	informer, err := c.informers.GetInformer(ctx, object, options...)
	if c.unread {
		return unreadInformer{informer}, err
	}
	return informer, err
}

func newFakeServices(t *testing.T, services ...*apiregistrationv1.APIService) *fakeServices {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, autoscalingv2.AddToScheme(scheme))
	require.NoError(t, apiregistrationv1.AddToScheme(scheme))
	informers := &informertest.FakeInformers{Scheme: scheme}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, service := range services {
		builder = builder.WithObjects(service)
	}
	return &fakeServices{Cache: informers, informers: informers, api: builder.Build()}
}

func (c *fakeServices) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.api.List(ctx, list, options...)
}

func (c *fakeServices) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// put creates or replaces an APIService.
func (c *fakeServices) put(t *testing.T, service *apiregistrationv1.APIService) {
	t.Helper()
	require.NoError(t, client.IgnoreNotFound(c.api.Delete(t.Context(), service.DeepCopy())))
	require.NoError(t, c.api.Create(t.Context(), service.DeepCopy()))
	informer, err := c.informers.FakeInformerFor(t.Context(), &apiregistrationv1.APIService{})
	require.NoError(t, err)
	informer.Update(service, service)
}

// testEnv has Capabilities that run.
type testEnv struct {
	*Capabilities
	services *fakeServices
	server   *fakeServer
	registry *prometheus.Registry
	log      *testLog
	// changes counts the notifications.
	changes atomic.Int32
}

// testLog keeps lines.
type testLog struct {
	mu    sync.Mutex // guards lines
	lines []string
}

// take returns the lines since the last call.
func (l *testLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.lines
	l.lines = nil
	return taken
}

func (l *testLog) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
}

// newTestEnv starts Capabilities in a bubble; they end with the test.
func newTestEnv(t *testing.T, server *fakeServer, change func(*CapabilitiesConfig),
	services ...*apiregistrationv1.APIService,
) *testEnv {
	t.Helper()
	env := &testEnv{
		services: newFakeServices(t, services...), server: server, registry: prometheus.NewRegistry(),
		log: &testLog{},
	}
	config := CapabilitiesConfig{
		APIServices: env.services, Server: server, Namespace: "pulsar-autoscaler", Own: testService(),
		Installed: func(string) bool { return false }, Registerer: env.registry,
	}
	if change != nil {
		change(&config)
	}
	env.Capabilities = newCapabilities(config)
	env.OnChange(func() { env.changes.Add(1) })
	ctx, cancel := context.WithCancel(log.IntoContext(t.Context(), env.log.logger()))
	done := make(chan error, 1)
	go func() { done <- env.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	synctest.Wait()
	return env
}

// workersRun reports whether workers run.
func (env *testEnv) workersRun() bool {
	select {
	case <-env.probed:
		return true
	default:
		return false
	}
}

func TestCapabilitiesAreKnownBeforeWorkersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnv(t, &fakeServer{tolerance: true}, nil,
			pointing("v1beta1.custom.metrics.k8s.io", 100, "monitoring/prometheus-adapter"))
		require.True(t, env.workersRun())
		require.NoError(t, env.WaitForProbe(t.Context()))
		require.Equal(t, plan.Capabilities{MetricsAPIHolder: "Service monitoring/prometheus-adapter"}, env.Now())
		require.NoError(t, testutil.GatherAndCompare(env.registry, strings.NewReader(`
			# HELP pulsar_autoscaler_cluster_capability 1 for a capability of the cluster, 0 for a missing one, none if unknown.
			# TYPE pulsar_autoscaler_cluster_capability gauge
			pulsar_autoscaler_cluster_capability{capability="custom_metrics"} 0
			pulsar_autoscaler_cluster_capability{capability="keda"} 0
			pulsar_autoscaler_cluster_capability{capability="tolerance"} 1
		`), "pulsar_autoscaler_cluster_capability"))
		require.Equal(t, int32(1), env.changes.Load())
	})
}

func TestCapabilitiesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "v1beta2.custom.metrics.k8s.io"
		env := newTestEnv(t, &fakeServer{}, nil, pointing(name, 200, "pulsar-autoscaler/adapter"))
		require.Equal(t, plan.Capabilities{}, env.Now())
		require.Zero(t, env.changes.Load(), "as assumed")
		env.log.take()

		env.services.put(t, pointing(name, 200, "monitoring/prometheus-adapter"))
		synctest.Wait()
		require.Equal(t, "Service monitoring/prometheus-adapter", env.Now().MetricsAPIHolder)
		require.Equal(t, int32(1), env.changes.Load(), "policies are enqueued")
		require.Equal(
			t,
			[]string{
				`"level"=0 "msg"="cluster capability changed" "capability"="custom_metrics" "from"="the adapter" "to"="Service monitoring/prometheus-adapter"`,
			},
			env.log.take(),
		)

		env.services.put(t, pointing(name, 100, "monitoring/prometheus-adapter"))
		synctest.Wait()
		require.Empty(t, env.log.take(), "the server did not change")

		require.NoError(t, env.services.api.Delete(t.Context(), pointing(name, 100, "")))
		time.Sleep(refreshInterval + time.Second)
		synctest.Wait()
		require.Equal(t, plan.Capabilities{NoMetricsAPI: true}, env.Now(), "the refresh replaces a lost event")

		env.log.take()
		env.server.set(func() { env.server.tolerance = true })
		time.Sleep(probeInterval)
		synctest.Wait()
		require.Equal(t, []string{
			`"level"=0 "msg"="cluster capability changed" "capability"="tolerance" "from"="no" "to"="yes"`,
		}, env.log.take(), "the cluster was upgraded")
		require.Equal(t, 2, env.server.times())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, env.log.take(), "no log without a change")
	})
}

// toleranceOf is the capability as logs show it.
func toleranceOf(env *testEnv) string {
	env.mu.Lock()
	defer env.mu.Unlock()
	return yesOrNo(env.known.tolerance)
}

func TestFailedProbesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{fails: errors.New("the API server is away")}
		env := newTestEnv(t, server, nil, pointing("v1beta2.custom.metrics.k8s.io", 200, "pulsar-autoscaler/adapter"))
		require.True(t, env.workersRun(), "workers do not wait for a successful probe")
		require.Equal(t, "unknown", toleranceOf(env))
		time.Sleep(time.Hour)
		synctest.Wait()
		requests := server.times()
		require.Less(t, requests, 16, "5 s, 10 s, 20 s and so on up to 10 min")
		require.Greater(t, requests, 10)
		lines := 0
		for _, line := range env.log.take() {
			if strings.Contains(line, "the API server is away") {
				lines++
			}
		}
		require.Equal(t, 1, lines, "logged once")
		server.set(func() { server.fails, server.tolerance = nil, true })
		time.Sleep(probeInterval)
		synctest.Wait()
		require.Equal(t, "yes", toleranceOf(env), "the probe succeeded")

		server.set(func() { server.fails = errors.New("away again") })
		time.Sleep(2 * probeInterval)
		synctest.Wait()
		require.Equal(t, "yes", toleranceOf(env), "a failed probe changes nothing")
	})
}

func TestWorkersBeginWithoutAPIServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnv(t, &fakeServer{}, func(c *CapabilitiesConfig) {
			services, ok := c.APIServices.(*fakeServices)
			require.True(t, ok)
			services.unread = true
		}, pointing("v1beta2.custom.metrics.k8s.io", 200, "monitoring/prometheus-adapter"))
		require.False(t, env.workersRun())
		time.Sleep(initialTimeout)
		synctest.Wait()
		require.True(t, env.workersRun())
		require.Equal(t, plan.Capabilities{}, env.Now(), "an unknown server counts as the adapter")
	})
}

func TestForeignExternalMetricsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const external = "v1beta1.external.metrics.k8s.io"
		env := newTestEnv(t, &fakeServer{}, func(c *CapabilitiesConfig) { c.ExternalMetrics = true },
			pointing("v1beta2.custom.metrics.k8s.io", 200, "pulsar-autoscaler/adapter"), pointing(external, 100,
				"keda/keda-operator-metrics-apiserver"))
		lines := strings.Join(env.log.take(), "\n")
		require.Contains(t, lines,
			`"another server serves the external metrics" "error"="v1beta1.external.metrics.k8s.io belongs to another server`)
		require.Contains(t, lines, `"holder"="Service keda/keda-operator-metrics-apiserver"`)
		require.Equal(t, plan.Capabilities{}, env.Now(), "decisions do not depend on it")
		require.InDelta(t, 0, testutil.ToFloat64(env.metrics.capability.WithLabelValues("external_metrics")), 0)

		env.services.put(t, pointing(external, 100, "pulsar-autoscaler/adapter"))
		synctest.Wait()
		require.InDelta(t, 1, testutil.ToFloat64(env.metrics.capability.WithLabelValues("external_metrics")), 0)
	})
}

func TestForbiddenAPIServicesAreLoggedOnce(t *testing.T) {
	logged := &testLog{}
	handler := logForbiddenOnce(logged.logger())
	for range 3 {
		handler(t.Context(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "apiservices"}, "", errors.New("no")))
	}
	lines := logged.take()
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "grant it get, list and watch on apiservices.apiregistration.k8s.io")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

func (b *fakeBroker) component(kind function.Kind, name string) function.Component {
	return function.Component{
		Cluster: backlog.Cluster{AdminURL: b.URL}, Kind: kind, Tenant: "public", Namespace: "default", Name: name,
	}
}

func TestDescribeSaysWhatAComponentConsumes(t *testing.T) {
	broker := newFakeBroker(t)
	for path, file := range map[string]string{
		"functions/public/default/sf":    "4.0.8-function-config.json",
		"functions/public/default/sf2":   "4.2.4-function-config.json",
		"functions/public/default/multi": "4.0.8-function-config-multi.json",
		"functions/public/default/pat":   "4.0.8-function-config-pat.json",
		"sinks/public/default/sk":        "4.0.8-sink-config.json",
	} {
		broker.on("/admin/v3/"+path, answers(string(fixture(t, file))))
	}
	tests := map[string]struct {
		component        function.Component
		topics, patterns []string
	}{
		"one input": {
			component: broker.component(function.KindFunction, "sf"), topics: []string{"persistent://public/default/sf-in"},
		},
		"one input, as in 4.2.4": {
			component: broker.component(function.KindFunction, "sf2"), topics: []string{"persistent://public/default/sf2-in"},
		},
		"two inputs": {
			component: broker.component(function.KindFunction, "multi"),
			topics:    []string{"persistent://public/default/multi-a", "persistent://public/default/multi-b"},
		},
		"a pattern": {
			component: broker.component(function.KindFunction, "pat"), topics: []string{},
			patterns: []string{"persistent://public/default/rx-.*"},
		},
		"a sink": {
			component: broker.component(function.KindSink, "sk"), topics: []string{"persistent://public/default/sk-in"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config, err := newSource(t, Config{}, broker).Worker(0).Describe(t.Context(), tt.component)

			require.NoError(t, err)
			require.Equal(t, function.Description{
				Subscription: backlog.Subscription{
					Cluster: tt.component.Cluster, Name: tt.component.FullName(), Topics: tt.topics, Patterns: tt.patterns,
					Workload: tt.component,
				},
				Type: backlog.Shared, Parallelism: 2,
			}, config)
		})
	}
}

func TestFetchInstancesOfFunctions(t *testing.T) {
	sent := time.Unix(1000, 0)
	busy := func(d time.Duration) *time.Duration { return &d }
	calls := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		status string
		want   backlog.InstancesSample
	}{
		"idle instances count 0": {
			status: "4.0.8-function-status-idle.json",
			want: backlog.InstancesSample{At: sent, Instances: []backlog.InstanceSample{
				{ID: "public/default/sf#1", Calls: calls(0), BusyTime: busy(0), FailedCallsCounted: true},
				{ID: "public/default/sf#0", Calls: calls(0), BusyTime: busy(0), FailedCallsCounted: true},
			}},
		},
		"failed calls of Java are in the time": {
			status: "4.0.8-function-status-after20.json",
			want: backlog.InstancesSample{At: sent, Instances: []backlog.InstanceSample{
				{
					ID: "public/default/sf#0", Received: 10, Processed: 10,
					Calls: calls(10), BusyTime: busy(1001901733), FailedCallsCounted: true,
				},
				{
					ID: "public/default/sf#1", Received: 10, Processed: 9, UserExceptions: 1,
					Calls: calls(10), BusyTime: busy(1002036644), FailedCallsCounted: true,
				},
			}},
		},
		"a stopped instance is silent and has no numbers": {
			status: "4.0.8-function-status-stopped.json", want: backlog.InstancesSample{At: sent, Silent: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("/admin/v3/functions/public/default/sf", answers(string(fixture(t, "4.0.8-function-config.json"))))
			broker.on("/admin/v3/functions/public/default/sf/status", answers(string(fixture(t, tt.status))))
			worker := newSource(t, Config{}, broker).Worker(0)
			worker.now = func() time.Time { return sent }

			sample, err := worker.FetchInstances(t.Context(), broker.component(function.KindFunction, "sf"))

			require.NoError(t, err)
			require.Equal(t, tt.want, sample)
		})
	}
}

func TestFetchInstancesOfASinkHasNoTimes(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("/admin/v3/sinks/public/default/sk/status", answers(string(fixture(t, "4.0.8-sink-status.json"))))
	sample, err := newSource(t, Config{}, broker).Worker(0).FetchInstances(t.Context(),
		broker.component(function.KindSink, "sk"))
	require.NoError(t, err)
	require.Equal(t, []backlog.InstanceSample{
		{ID: "public/default/sk#0", Received: 1, Processed: 1},
		{ID: "public/default/sk#1", Received: 3, Processed: 3},
	}, sample.Instances)
	require.Zero(t, sample.Silent)
	require.Equal(t, []string{"/admin/v3/sinks/public/default/sk/status"}, broker.requested(), "a sink's runtime is known")
}

func TestFetchInstancesRepeatsTheLastAnswer(t *testing.T) {
	broker := newFakeBroker(t)
	const path = "/admin/v3/sinks/public/default/"
	for _, name := range []string{"a", "b"} {
		broker.on(path+name+"/status", answers(string(fixture(t, "4.0.8-sink-status.json"))))
	}
	now := time.Unix(1000, 0)
	worker := newSource(t, Config{}, broker).Worker(30 * time.Second)
	worker.now = func() time.Time { return now }
	fetch := func(name string) backlog.InstancesSample {
		sample, err := worker.FetchInstances(t.Context(), broker.component(function.KindSink, name))
		require.NoError(t, err)
		return sample
	}
	first := fetch("a")
	now = now.Add(29 * time.Second)
	require.Equal(t, first, fetch("a"), "the same answer with its own time")
	require.NotEqual(t, first.At, fetch("b").At)
	now = now.Add(time.Second)
	require.Equal(t, now, fetch("a").At)
	require.Equal(t, []string{path + "a/status", path + "b/status", path + "a/status"}, broker.requested())

	now = now.Add(time.Hour)
	broker.on(path+"a/status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	_, err := worker.FetchInstances(t.Context(), broker.component(function.KindSink, "a"))
	require.ErrorIs(t, err, backlog.ErrForbidden)
}

func TestAWorkerThatRunsApartIsReadAtItsOwnURL(t *testing.T) {
	broker, apart := newFakeBroker(t), newFakeBroker(t)
	apart.on("/admin/v3/functions/public/default/sf", answers(string(fixture(t, "4.0.8-function-config.json"))))
	component := broker.component(function.KindFunction, "sf")
	component.WorkerURL = apart.URL

	config, err := newSource(t, Config{}, broker, apart).Worker(0).Describe(t.Context(), component)
	require.NoError(t, err)
	require.Equal(t, broker.URL, config.Subscription.Cluster.AdminURL, "its topics are read from the brokers")
	require.Empty(t, broker.requested())

	_, err = newSource(t, Config{}, broker).Worker(0).Describe(t.Context(), component)
	require.ErrorIs(t, err, backlog.ErrHostNotAllowed)
	require.EqualError(t, err,
		"host not allowed: "+apart.host()+" is not an allowed Pulsar host: add it to "+allowedHostsFix)
	require.Len(t, apart.requested(), 1, "nothing was sent to a host that is not allowed")
}

func TestTheWorkerThatOwnsAFunctionIsFollowedToAllowedHosts(t *testing.T) {
	broker, owner := newFakeBroker(t), newFakeBroker(t)
	broker.on("/admin/v3/sinks/public/default/sk/status", redirectsTo(owner.URL))
	owner.on("/admin/v3/sinks/public/default/sk/status", answers(string(fixture(t, "4.0.8-sink-status.json"))))
	workload := broker.component(function.KindSink, "sk")

	config := Config{Own: ownToken(t, "secret")}
	sample, err := newSource(t, config, broker, owner).Worker(0).FetchInstances(t.Context(), workload)
	require.NoError(t, err)
	require.Len(t, sample.Instances, 2)
	require.Equal(t, "Bearer secret", owner.request(0).Header.Get("Authorization"))

	_, err = newSource(t, config, broker).Worker(0).FetchInstances(t.Context(), workload)
	require.ErrorIs(t, err, backlog.ErrHostNotAllowed)
	require.ErrorContains(t, err,
		"redirects sink public/default/sk to "+owner.host()+", which is not an allowed Pulsar host")
	require.Len(t, owner.requested(), 1)
}

func TestWorkersAnswersBecomeReasons(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		kind   function.Kind
		reason error
		result string
		text   string
	}{
		"a broker without a worker": {
			answer: says(http.StatusConflict,
				"Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false"),
			reason: backlog.ErrNoWorker, result: "no_worker",
			text: `no function worker: HOST says "Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is ` +
				`set to false" of ` +
				`function public/default/sf: set functionsWorkerEnabled=true on the brokers, or give the URL of the worker that runs apart`,
		},
		"a worker that is starting": {
			answer: says(http.StatusServiceUnavailable,
				"Function worker service is not done initializing. Please try again in a little while."),
			reason: backlog.ErrUnavailable, result: "unavailable",
			text: `unavailable: HOST says "Function worker service is not done initializing. Please try again in a little ` +
				`while." of ` +
				`function public/default/sf: retried soon`,
		},
		"a worker without a leader": {
			answer: says(http.StatusServiceUnavailable, "Leader not yet ready. Please retry again"),
			reason: backlog.ErrUnavailable,
			result: "unavailable",
			text:   `unavailable: HOST says "Leader not yet ready. Please retry again" of function public/default/sf: retried soon`,
		},
		"no such function": {
			answer: says(http.StatusNotFound, "Function sf doesn't exist"),
			reason: backlog.ErrFunctionNotFound,
			result: "function_not_found",
			text:   `function not found: HOST says "Function sf doesn't exist" of function public/default/sf: create it or correct its name`,
		},
		"a role without the permission for functions": {
			answer: says(http.StatusUnauthorized, "Client is not authorized to perform operation"),
			reason: backlog.ErrForbidden,
			result: "forbidden",
			text: `permission missing: HOST says "Client is not authorized to perform operation" of function public/default/sf: ` +
				`grant functions on namespace public/default to the role of the credentials`,
		},
		"a role without the permission for sinks": {
			answer: says(http.StatusUnauthorized, "Client is not authorized to perform operation"), kind: function.KindSink,
			reason: backlog.ErrForbidden, result: "forbidden",
			text: `permission missing: HOST says "Client is not authorized to perform operation" of sink public/default/sf: ` +
				`grant sinks on namespace public/default to the role of the credentials`,
		},
		"refused credentials": {
			answer: replays(t, "4.0.8-401-no-token.txt"), reason: backlog.ErrUnauthenticated, result: "unauthenticated",
			text: "credentials refused: HOST requires credentials and none are configured: give the adapter a token",
		},
		"another 409": {
			answer: says(http.StatusConflict, "whatever"),
			reason: backlog.ErrProtocol,
			result: "protocol",
			text:   `unexpected answer: HOST says "whatever" of function public/default/sf: is http://HOST a Pulsar admin service?`,
		},
		"another function's configuration": {
			answer: answers(`{"tenant":"public","namespace":"default","name":"other","parallelism":1}`),
			reason: backlog.ErrProtocol, result: "protocol",
			text: "unexpected answer: HOST did not send the state of function public/default/sf (it is about " +
				"public/default/other): " +
				"is http://HOST a Pulsar admin service?",
		},
		"a source that reads from elsewhere": {
			answer: answers(`{"tenant":"public","namespace":"default","name":"sf","topicName":"out","parallelism":1}`),
			kind:   function.KindSource,
			reason: backlog.ErrUnsupported, result: "ok",
			text: "not supported: source public/default/sf brings data into Pulsar and consumes nothing there, so there is no " +
				"backlog to scale on: use a HorizontalPodAutoscaler on its CPU; only sources with batchSourceConfig can be scaled",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			kind := function.KindFunction
			if tt.kind != "" {
				kind = tt.kind
			}
			broker.on("/admin/v3/"+string(kind)+"s/public/default/sf", tt.answer)
			registry := prometheus.NewRegistry()
			_, err := newSource(t, Config{Registerer: registry}, broker).Worker(0).Describe(t.Context(),
				broker.component(kind, "sf"))

			require.ErrorIs(t, err, tt.reason)
			require.EqualError(t, err, strings.ReplaceAll(tt.text, "HOST", broker.host()))
			require.False(t, backlog.Authoritative(err), "it is no word about a topic")
			require.Contains(t, counted(t, registry), "component "+tt.result)
		})
	}
}

func TestInvalidComponentsAreNotRequested(t *testing.T) {
	broker := newFakeBroker(t)
	worker := newSource(t, Config{}, broker).Worker(0)
	good := broker.component(function.KindFunction, "sf")
	tests := map[string]struct {
		change func(*function.Component)
		text   string
	}{
		"no tenant": {func(c *function.Component) { c.Tenant = "" }, `"/default/sf" must look like`},
		"steps in the namespace": {
			func(c *function.Component) { c.Namespace = ".." },
			"must look like tenant/namespace/name",
		},
		"steps in the name":   {func(c *function.Component) { c.Name = ".." }, "must look like tenant/namespace/name"},
		"a name of two parts": {func(c *function.Component) { c.Name = "a/b" }, "must look like tenant/namespace/name"},
		"a line in the name":  {func(c *function.Component) { c.Name = "a\nb" }, "must look like tenant/namespace/name"},
		"no name":             {func(c *function.Component) { c.Name = "" }, "must look like tenant/namespace/name"},
		"no kind":             {func(c *function.Component) { c.Kind = "" }, `not a ""`},
		"a path in the worker's URL": {
			func(c *function.Component) { c.WorkerURL = "http://worker:6750/admin/v3" },
			"the URL of the function worker must look like http://pulsar-functions-worker.pulsar:6750",
		},
		"no URL": {func(c *function.Component) { c.Cluster.AdminURL = "" }, "the Pulsar admin URL must look like"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			component := good
			tt.change(&component)
			_, err := worker.Describe(t.Context(), component)
			require.ErrorContains(t, err, tt.text)
		})
	}
	require.Empty(t, broker.requested())
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// changed is one change as a worker receives it.
type changed struct{ method, part, kind, body string }

// changes records requests, and then answers.
type changes struct {
	mu   sync.Mutex // guards seen
	seen []changed
}

func (c *changes) then(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		got := changed{method: r.Method}
		if parts, err := r.MultipartReader(); err == nil {
			for part, err := parts.NextPart(); err == nil; part, err = parts.NextPart() {
				body, _ := io.ReadAll(part)
				got.part, got.kind, got.body = got.part+part.FormName(), got.kind+part.Header.Get(
					"Content-Type"), got.body+string(body)
			}
		}
		c.mu.Lock()
		c.seen = append(c.seen, got)
		c.mu.Unlock()
		answer(w, r)
	}
}

func noContent() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
}

func TestAChangeOfParallelismSendsThatAlone(t *testing.T) {
	for kind, part := range map[function.Kind]string{
		function.KindFunction: "functionConfig", function.KindSink: "sinkConfig", function.KindSource: "sourceConfig",
	} {
		t.Run(string(kind), func(t *testing.T) {
			broker, sent := newFakeBroker(t), &changes{}
			broker.on("/admin/v3/"+string(kind)+"s/public/default/sf", sent.then(noContent()))
			registry := prometheus.NewRegistry()
			worker := newSource(t, Config{Registerer: registry, Own: ownToken(t, "hunter2")}, broker).Worker(0)
			require.NoError(t, worker.SetParallelism(t.Context(), broker.component(kind, "sf"), 5))
			require.Equal(t, []changed{{http.MethodPut, part, "application/json", `{"parallelism":5}`}}, sent.seen)
			require.Equal(t, "Bearer hunter2", broker.request(0).Header.Get("Authorization"))
			require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP pulsar_autoscaler_source_requests_total Requests to Pulsar, by call and result. Call subscribe goes to brokers.
# TYPE pulsar_autoscaler_source_requests_total counter
pulsar_autoscaler_source_requests_total{call="parallelism",result="ok"} 1
`), "pulsar_autoscaler_source_requests_total"))
		})
	}
}

func TestAChangeIsRedirectedToItsWorker(t *testing.T) {
	first, second, sent := newFakeBroker(t), newFakeBroker(t), &changes{}
	const path = "/admin/v3/functions/public/default/sf"
	first.on(path, redirectsTo(second.URL))
	second.on(path, sent.then(noContent()))
	require.NoError(t,
		newSource(t, Config{}, first, second).Worker(0).SetParallelism(t.Context(),
			first.component(function.KindFunction, "sf"), 2))
	require.Equal(t, []changed{{http.MethodPut, "functionConfig", "application/json", `{"parallelism":2}`}}, sent.seen)

	worker := newSource(t, Config{}, first).Worker(0)
	err := worker.SetParallelism(t.Context(), first.component(function.KindFunction, "sf"),
		2)
	require.ErrorIs(t, err, backlog.ErrHostNotAllowed)
	require.ErrorContains(t, err, AllowedHostsFlag)
	require.Len(t, sent.seen, 1)

	first.on(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, second.URL+path, http.StatusFound) })
	err = newSource(t, Config{}, first, second).Worker(0).SetParallelism(t.Context(),
		first.component(function.KindFunction, "sf"), 2)
	require.ErrorIs(t, err, backlog.ErrProtocol)
	require.Len(t, sent.seen, 1, "a redirect that makes a question of it is not followed")
}

func TestAnswersOfWorkersToAChange(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		reason error
		text   string
	}{
		"no change": {says(400, "Update contains no change"), nil, ""},
		"the function does not exist": {
			says(400, "Function sf doesn't exist"), backlog.ErrFunctionNotFound,
			"create it or correct its name",
		},
		"its package does not exist": {
			says(400, "Package is not provided"), backlog.ErrUnsupported,
			`"Package is not provided" of function public/default/sf`,
		},
		"the worker starts": {
			says(
				503,
				"Function worker service is not done initializing. Please try again in a little while.",
			),
			backlog.ErrUnavailable,
			"retried soon",
		},
		"no worker": {
			says(
				409,
				"Pulsar Function Worker is not enabled, probably functionsWorkerEnabled is set to false",
			),
			backlog.ErrNoWorker,
			"functionsWorkerEnabled=true",
		},
		"the role may not": {
			says(401, "Client is not authorized to perform operation"), backlog.ErrForbidden,
			"grant functions on namespace public/default",
		},
		"the token is refused":        {sends(401, "text/html", "<html>"), backlog.ErrUnauthenticated, "none are configured"},
		"the worker has an accident":  {says(500, "boom"), backlog.ErrUnavailable, "boom"},
		"it is no Pulsar":             {sends(400, "text/html", "<html>"), backlog.ErrProtocol, "a Pulsar admin service?"},
		"an answer of another server": {sends(404, "text/html", "<html>"), backlog.ErrProtocol, "a Pulsar admin service?"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("/admin/v3/functions/public/default/sf", tt.answer)
			err := newSource(t, Config{}, broker).Worker(0).SetParallelism(t.Context(),
				broker.component(function.KindFunction, "sf"), 3)
			require.ErrorIs(t, err, tt.reason)
			if tt.reason != nil {
				require.ErrorContains(t, err, tt.text)
			}
		})
	}
}

func TestAChangeIsRetriedOnAWorkerThatRecovers(t *testing.T) {
	broker, sent := newFakeBroker(t), &changes{}
	broker.on("/admin/v3/functions/public/default/sf", sent.then(says(503, "Leader not yet ready. Please retry again")),
		sent.then(noContent()))
	require.NoError(t,
		newSource(t, Config{}, broker).Worker(0).SetParallelism(t.Context(),
			broker.component(function.KindFunction, "sf"), 3))
	require.Len(t, sent.seen, 2)
	require.Equal(t, sent.seen[0], sent.seen[1])
}

func TestNoChangeToNoInstances(t *testing.T) {
	broker := newFakeBroker(t)
	worker := newSource(t, Config{}, broker).Worker(0)
	for _, instances := range []int32{0, -1} {
		require.ErrorIs(t, worker.SetParallelism(t.Context(), broker.component(function.KindFunction, "sf"), instances),
			backlog.ErrUnsupported)
	}
	require.ErrorIs(t, worker.SetParallelism(t.Context(), broker.component(function.KindFunction, ".."), 2),
		backlog.ErrUnsupported)
	require.Empty(t, broker.requested())
}

func TestStatusDistinguishesAStoppedComponentFromAFailingOne(t *testing.T) {
	tests := map[string]struct {
		file    string
		want    function.Status
		stopped bool
	}{
		"stopped":          {"4.0.8-function-status-stopped.json", function.Status{Instances: 1}, true},
		"idle":             {"4.0.8-function-status-idle.json", function.Status{Instances: 2, Running: 2}, false},
		"cannot start":     {"4.0.8-function-status-broken.json", function.Status{Instances: 2, Failed: 2}, false},
		"cannot on 4.2.4":  {"4.2.4-function-status-broken.json", function.Status{Instances: 2, Failed: 2}, false},
		"cannot on 5.0":    {"5.0.0-M1-function-status-broken.json", function.Status{Instances: 2, Failed: 2}, false},
		"a sink that runs": {"4.0.8-sink-status-drain.json", function.Status{Instances: 1, Running: 1}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("/admin/v3/functions/public/default/sf/status", answers(string(fixture(t, tt.file))))
			status, err := newSource(t, Config{}, broker).Worker(0).Status(t.Context(),
				broker.component(function.KindFunction, "sf"))
			require.NoError(t, err)
			require.Equal(t, tt.want, status)
			require.Equal(t, tt.stopped, status.Stopped())
		})
	}
}

func TestAnUnscheduledInstanceIsNotStopped(t *testing.T) {
	for text, want := range map[string]function.Status{
		`{"numInstances":2,"instances":[]}`: {Instances: 2, Failed: 2},
		`{"numInstances":0,"instances":[]}`: {},
		`{"numInstances":2,"instances":[{"instanceId":0,"status":{"running":false,"error":""}},{"instanceId":1,"status":{"running":true}}]}`: {
			Instances: 2, Running: 1,
		},
	} {
		status, err := decodeRunning(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, want, status)
		require.False(t, status.Stopped())
	}
	for _, text := range []string{"", "{}", `{"numInstances":1,"instances":[{"instanceId":0,"status":{}}]}`} {
		_, err := decodeRunning(strings.NewReader(text))
		require.Error(t, err, text)
	}
}

func FuzzDecodeRunning(f *testing.F) {
	addFixtures(f, "*-status*.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		status, err := decodeRunning(bytes.NewReader(content))
		if err != nil {
			require.Zero(t, status)
			return
		}
		require.False(t, status.Instances < 0 || status.Running < 0 || status.Failed < 0)
		require.False(t, status.Stopped() && (status.Instances == 0 || status.Running > 0))
	})
}

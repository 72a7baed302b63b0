// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

var begin = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// fakePrometheus serves range queries: the value of a series at a minute, by what the expression has before the
// matchers. Behind a | a key has the labels, as in running_replicas|policy=resize,namespace=media.
type fakePrometheus struct {
	series map[string]func(minute int) float64

	mu      sync.Mutex
	queries []string
	points  int
	headers http.Header
}

func (f *fakePrometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	number := func(key string) float64 {
		value, _ := strconv.ParseFloat(r.Form.Get(key), 64)
		return value
	}
	query := r.Form.Get("query")
	from, to, step := number("start"), number("end"), number("step")
	f.mu.Lock()
	f.queries, f.headers = append(f.queries, query), r.Header
	f.points = max(f.points, int((to-from)/step)+1)
	f.mu.Unlock()
	result := []any{}
	for key, value := range f.series {
		name, labels, _ := strings.Cut(key, "|")
		if !strings.Contains(query, name+"{") {
			continue
		}
		metric := map[string]string{}
		for label := range strings.SplitSeq(labels, ",") {
			if name, value, some := strings.Cut(label, "="); some {
				metric[name] = value
			}
		}
		var points [][]any
		for at := from; at <= to; at += step {
			if v := value(int((at - float64(begin.Unix())) / 60)); !math.IsNaN(v) {
				points = append(points, []any{at, fmt.Sprint(v)})
			}
		}
		if len(points) > 0 {
			result = append(result, map[string]any{"metric": metric, "values": points})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": "success", "data": map[string]any{"resultType": "matrix", "result": result},
	})
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func config(url string, length time.Duration) Config {
	return Config{
		Server: Server{URL: url}, From: begin, To: begin.Add(length), Step: time.Minute, MaxGap: 10 * time.Minute,
		Function: Function{
			Topics: []string{"persistent://public/default/in"}, Subscription: "public/default/fn",
			Namespace: "media", Policy: "resize", Kind: "StatefulSet", Workload: "resize-function",
		},
	}
}

func constant(value float64) func(int) float64 { return func(int) float64 { return value } }

// whole has the series of Pulsar and kube-state-metrics for a Function that always has work on two replicas, and from
// minute 30 to 40 on four, which are all ready two minutes later.
func whole() map[string]func(int) float64 {
	scaled := func(delay int) func(int) float64 {
		return func(minute int) float64 {
			if phase := minute % 60; phase >= 30+delay && phase < 40 {
				return 4
			}
			return 2
		}
	}
	return map[string]func(int) float64{
		published: constant(90),
		dispatched: func(minute int) float64 {
			if scaled(2)(minute) == 4 {
				return 200
			}
			return 100
		},
		backlogGauge:                constant(5000),
		"kube_statefulset_replicas": scaled(0), "kube_statefulset_status_replicas_ready": scaled(2),
	}
}

func TestReadMakesATraceAndEstimates(t *testing.T) {
	fake := &fakePrometheus{series: whole()}
	h, err := Read(t.Context(), config(serve(t, fake), 5*time.Hour))
	require.NoError(t, err)
	require.Equal(t, 5*3600, h.Load.Seconds())
	start, known := h.Load.Start()
	require.True(t, known)
	require.Equal(t, begin, start)
	replicas, known := h.Load.Replicas(31 * 60)
	require.True(t, known)
	require.Equal(t, 4, replicas)
	require.InDelta(t, 90, h.Load.Rate(1000), 1e-9)
	require.NotNil(t, h.Capacity)
	require.InDelta(t, 50, h.Capacity.Expected, 1e-9)
	require.InDelta(t, 47.5, h.Capacity.Low, 1e-9)
	require.NotNil(t, h.Start)
	require.InDelta(t, 120, h.Start.Expected, 1e-9)
	require.InDelta(t, 60, h.Start.Low, 1e-9)
	require.InDelta(t, 180, h.Start.High, 1e-9)
	again, err := trace.Read(strings.NewReader(string(h.CSV)), time.Minute)
	require.NoError(t, err)
	require.Equal(t, h.Load, again)
	late := h.Late(50, 10*time.Second)
	require.NotNil(t, late)
	require.InDelta(t, 1, *late, 1e-9, "4 replicas process 2,000 of 5,000 messages in 10 s")
	require.Zero(t, *h.Late(50, time.Minute))
}

func TestReadTakesAWeekInParts(t *testing.T) {
	fake := &fakePrometheus{series: whole()}
	h, err := Read(t.Context(), config(serve(t, fake), 7*24*time.Hour))
	require.NoError(t, err)
	require.Equal(t, 7*24*3600, h.Load.Seconds())
	require.LessOrEqual(t, fake.points, 11_000, "Prometheus refuses more")
}

func TestReadFallsBackToTheSeriesOfThePolicy(t *testing.T) {
	fake := &fakePrometheus{series: map[string]func(int) float64{
		policyPrefix + "publish_rate": constant(20), policyPrefix + "running_replicas": constant(3),
		policyPrefix + "capacity_messages_per_second": constant(10),
		policyPrefix + "capacity_uncertainty_ratio":   constant(0.1),
	}}
	h, err := Read(t.Context(), config(serve(t, fake), time.Hour))
	require.NoError(t, err)
	require.InDelta(t, 20, h.Load.Rate(60), 1e-9)
	replicas, known := h.Load.Replicas(60)
	require.True(t, known)
	require.Equal(t, 3, replicas)
	require.InDelta(t, 8, h.Capacity.Low, 1e-9, "two standard deviations")
	require.InDelta(t, 12, h.Capacity.High, 1e-9)
	require.Nil(t, h.Start)
	require.Nil(t, h.Late(10, time.Minute))
}

func TestReadLeavesMissingSeriesUnknown(t *testing.T) {
	idle := whole()
	idle[backlogGauge] = constant(3)
	h, err := Read(t.Context(), config(serve(t, &fakePrometheus{series: idle}), time.Hour))
	require.NoError(t, err)
	require.Nil(t, h.Capacity, "idle replicas do not show what they can do")
	require.InDelta(t, 50, h.SeenCapacity, 1e-9)
	require.Nil(t, h.Start, "one scale-up is too few")
}

func TestReadNamesMissingSeries(t *testing.T) {
	holes := whole()
	holes[published] = func(minute int) float64 {
		if minute > 20 && minute < 50 {
			return math.NaN()
		}
		return 1
	}
	tests := map[string]struct {
		series map[string]func(int) float64
		change func(*Config)
		want   string
	}{
		"no arrivals": {nil, func(*Config) {}, "Prometheus has none between 2026-03-02T00:00:00Z and"},
		"a gap":       {holes, func(*Config) {}, "is 30m0s after the row before"},
		"no topics":   {whole(), func(c *Config) { c.Function = Function{} }, "name the topics"},
		"no step":     {whole(), func(c *Config) { c.Step = 0 }, "the step is 0s"},
		"no time":     {whole(), func(c *Config) { c.To = c.From }, "the time is 0s long"},
		"no URL":      {whole(), func(c *Config) { c.Server.URL = "prometheus:9090" }, "must be http://host:port"},
		"two credentials": {
			whole(), func(c *Config) { c.Server.Token, c.Server.Username = "a", "b" }, "use one of them",
		},
		"no authority": {whole(), func(c *Config) { c.Server.CA = []byte("none") }, "has no certificate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := config(serve(t, &fakePrometheus{series: tt.series}), time.Hour)
			tt.change(&c)
			_, err := Read(t.Context(), c)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestExpressionsEscapeLabels(t *testing.T) {
	f := Function{
		Topics: []string{`t/n/a.b"c`, "persistent://t/n/x"}, TopicsPattern: `t/n/eu-.*`, Subscription: `s"\`,
		Namespace: "n", Policy: `p"`, Kind: "Deployment", Workload: "w",
	}
	const matcher = `topic=~"persistent://t/n/a\\.b\"c(-partition-[0-9]+)?|persistent://t/n/x(-partition-[0-9]+)?|` +
		`persistent://(?:t/n/eu-.*)(-partition-[0-9]+)?"`
	require.Equal(t, []string{
		`sum(rate(pulsar_in_messages_total{` + matcher + `}[2m]))`, `sum(pulsar_rate_in{` + matcher + `})`,
		`max(pulsar_autoscaler_policy_publish_rate{namespace="n",policy="p\""})`,
	}, f.arrivals(2*time.Minute))
	require.Equal(t, `sum(pulsar_subscription_back_log{`+matcher+`,subscription="s\"\\"})`, f.backlog()[0])
	require.Equal(t, `max(kube_deployment_spec_replicas{namespace="n",deployment="w"})`, f.replicas()[0])
	used := strings.Join(append(append(append(f.arrivals(time.Minute), f.processed(time.Minute)...), f.backlog()...),
		append(f.replicas(), f.ready()...)...), " ")
	f.Kind = "StatefulSet"
	used += strings.Join(append(append(f.replicas(), f.ready()...), append(f.policySeries("capacity_messages_per_second"),
		f.policySeries("capacity_uncertainty_ratio")...)...), " ")
	for _, name := range Names() {
		require.Contains(t, used, name+"{", "help names what is queried")
	}
}

func TestTargetOfNamesTheWorkload(t *testing.T) {
	mesh := v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadSink, Name: "store"}
	tests := map[string]struct {
		target     v1alpha1.ScaleTargetRef
		kind, name string
	}{
		"a Function": {v1alpha1.ScaleTargetRef{Kind: "Function", Name: "f"}, "StatefulSet", "f-function"},
		"a Sink":     {v1alpha1.ScaleTargetRef{Kind: "Sink", Name: "f"}, "StatefulSet", "f-sink"},
		"a component of a mesh": {
			v1alpha1.ScaleTargetRef{Kind: "FunctionMesh", Name: "m", Component: mesh}, "StatefulSet", "m-store-sink",
		},
		"a Deployment":            {v1alpha1.ScaleTargetRef{Kind: "Deployment", Name: "d"}, "Deployment", "d"},
		"a kind without a series": {v1alpha1.ScaleTargetRef{Kind: "Rollout", Name: "r"}, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			policy := v1alpha1.AutoscalingPolicy{}
			policy.Name, policy.Namespace, policy.Spec.ScaleTargetRef = "p", "n", tt.target
			policy.Spec.Subscription = &v1alpha1.Subscription{Name: "s", Topics: []v1alpha1.TopicName{"a/b/c"}}
			require.Equal(t, Function{
				Topics: []string{"a/b/c"}, Subscription: "s", Namespace: "n", Policy: "p", Kind: tt.kind, Workload: tt.name,
			}, TargetOf(policy))
		})
	}
}

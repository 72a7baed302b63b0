// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// policyOf returns a policy for a workload of the same name.
func policyOf(apiVersion, kind, name string) *v1alpha1.AutoscalingPolicy {
	p := &v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: name}}
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: apiVersion, Kind: kind, Name: name}
	p.Spec.MaxReplicas, p.Spec.Mode = 20, v1alpha1.ModeAuto
	p.Spec.LatencyObjective = metav1.Duration{Duration: 30 * time.Second}
	return p
}

func workload(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace("media")
	object.SetName(name)
	return object
}

// targetCluster has a Function, a Sink, a Deployment and a Source with a policy each, and a Function without one.
func targetCluster(t *testing.T) client.Client {
	t.Helper()
	const mesh, apps = "compute.functionmesh.io/v1alpha1", "apps/v1"
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	deployed := policyOf(apps, "Deployment", "billing")
	deployed.Spec.Subscription = &v1alpha1.Subscription{TopicsPattern: "shop/orders/eu-.*", Name: "billing"}
	input := map[string]any{"topics": []any{"public/default/images", "persistent://public/default/gone"}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		policyOf(mesh, "Function", "resize"), policyOf(mesh, "Sink", "store"), policyOf(mesh, "Source", "crawl"), deployed,
		workload(mesh, "Function", "resize", map[string]any{
			"input": input, "output": map[string]any{"topic": "resized"},
		}),
		workload(mesh, "Function", "alone", map[string]any{"input": input}),
		workload(mesh, "Sink", "store", map[string]any{"input": input, "output": map[string]any{"topic": "gone"}}),
		workload(mesh, "Source", "crawl", map[string]any{}),
		workload(apps, "Deployment", "billing", map[string]any{}),
	).Build()
}

// topicsExist is an admin service that has all topics except "gone".
func topicsExist(t *testing.T) admin {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/gone/") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"partitions": 0}`)
	}))
	t.Cleanup(server.Close)
	return adminAt(t, server.URL)
}

func TestTargetGetsTheLoadInATopicThatItConsumes(t *testing.T) {
	kube := targetCluster(t)
	for name, test := range map[string]struct{ target, topic, input, output, err string }{
		"a Function with an output": {
			"Function/resize", "images", "persistent://public/default/images", "persistent://public/default/resized", "",
		},
		"a kind in lower case": {
			"function/resize", "images", "persistent://public/default/images", "persistent://public/default/resized", "",
		},
		"a Sink": {
			"Sink/store", "persistent://public/default/images", "persistent://public/default/images", "", "",
		},
		"a Deployment with a pattern": {
			"Deployment/billing", "shop/orders/eu-west", "persistent://shop/orders/eu-west", "", "",
		},
		"another topic": {
			"Function/resize", "orders", "", "",
			`the target does not consume the topic: --i-know-this-publishes-into is "orders", and Function/resize consumes ` +
				"persistent://public/default/gone, persistent://public/default/images",
		},
		"a topic that the pattern leaves out": {
			"Deployment/billing", "shop/orders/us-west", "", "", "Deployment/billing consumes persistent://shop/orders/eu-.*",
		},
		"the output": {"Function/resize", "resized", "", "", "does not consume the topic"},
		"a topic that does not exist": {
			"Function/resize", "gone", "", "", "looking for topic persistent://public/default/gone: pulsar answered 404",
		},
		"a Function without a policy": {
			"Function/alone", "images", "", "", "no AutoscalingPolicy of namespace media has Function/alone as scaleTargetRef",
		},
		"a Source": {"Source/crawl", "images", "", "", "it is no Function or Sink of Function Mesh"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := ParseTarget(test.target)
			require.NoError(t, err)
			target.Namespace, target.Topic = "media", test.topic
			r := newRunner(Config{Target: target, Kube: kube})
			r.admin = topicsExist(t)
			s, err := r.target(t.Context())
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.input, s.input)
			require.Equal(t, test.output, s.output)
			require.Equal(t, 30*time.Second, s.objective)
			require.Contains(t, s.setting, "in mode Auto, latencyObjective 30s, 1 to 20 replicas, input "+test.input)
		})
	}
	for _, text := range []string{"", "resize", "Function/", "/resize", "Function/a/b"} {
		_, err := ParseTarget(text)
		require.ErrorContains(t, err, "it must be Kind/name", text)
	}
}

func TestMessagesHaveTheWaitOfThePolicyWhenTheyWerePublished(t *testing.T) {
	g := &gauge{waits: load.NewTally(10 * time.Second)}
	for _, s := range []Sample{
		{Published: 10, WaitSeconds: new(0.0)},
		{Published: 30, WaitSeconds: new(5.0)},
		{Published: 35},
		{Published: 50, WaitSeconds: new(20.0)},
	} {
		read := g.read(s)
		require.Equal(t, s.WaitSeconds, read.P50Seconds)
		require.Nil(t, read.Done, "there is no output")
	}
	require.Equal(t, load.Counts{Done: 45, Late: 15, Duplicates: new(int64(0))}, g.waits.Counts(), "5 waits are unknown")
	require.InDelta(t, 5, g.waits.Latencies().P50.Seconds(), 0.1)
}

func TestWaitOfAStatusIsKnownForSomeTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(ago time.Duration) v1alpha1.Signals {
		return v1alpha1.Signals{MeasuredAt: metav1.NewTime(now.Add(-ago))}
	}
	waiting, empty, unknown, old := at(time.Minute), at(time.Minute), at(time.Minute), at(7*time.Minute)
	waiting.Wait = &metav1.Duration{Duration: 1500 * time.Millisecond}
	empty.ReadyMessages, unknown.ReadyMessages, old.ReadyMessages = new(int64(0)), new(int64(5)), new(int64(0))
	require.Equal(t, new(1.5), waitSeconds(waiting, now))
	require.Equal(t, new(0.0), waitSeconds(empty, now), "nothing waits")
	require.Nil(t, waitSeconds(unknown, now), "the wait is unknown")
	require.Nil(t, waitSeconds(old, now), "the status is no longer written")
}

func TestLimitsOfATargetWithoutResults(t *testing.T) {
	c := Contender{Name: "Sink/store", LatencyFrom: PolicyWait, Messages: load.Result{
		Counts: load.Counts{Done: 100}, Due: 100, Latencies: load.Latencies{P99: time.Second},
	}}
	v := judge([]Contender{c}, scenario.Limits{
		MaxLateRatio: new(0.0), MaxP99: &metav1.Duration{Duration: time.Second}, MaxDuplicates: new(int64(0)),
	})
	require.Equal(t, Missed, v.Outcome)
	require.Equal(t, Check{Name: "duplicate results", Limit: "0", Measured: "-"}, v.Checks[2], "duplicates are unknown")
	require.True(t, v.Checks[0].Met && v.Checks[1].Met)
	require.Contains(t, Result{Contenders: []Contender{c}}.notes()[0], "latency is the wait in the status of the policy")
}

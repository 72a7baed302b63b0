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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

// instanceCommand is how the function worker's StatefulSets start an instance, shortened.
const instanceCommand = `exec java -cp /pulsar/instances/java-instance.jar org.x.JavaInstanceMain --jar f.jar ` +
	`--function_details '{"tenant":"public","namespace":"default","name":"crop","source":{"inputSpecs":{"images":{}}},` +
	`"sink":{"topic":"resized"},"componentType":"FUNCTION"}' --port 9093`

// targetCluster has a policy for each kind of target, and a Function without one.
func targetCluster(t *testing.T) client.Client {
	t.Helper()
	const mesh, apps = "compute.functionmesh.io/v1alpha1", "apps/v1"
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	deployed := policyOf(apps, "Deployment", "billing")
	deployed.Spec.Subscription = &v1alpha1.Subscription{TopicsPattern: "shop/orders/eu-.*", Name: "billing"}
	component := policyOf(mesh, "FunctionMesh", "etl")
	component.Spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "load"}
	ofWorker := policyOf("", "", "thumb")
	ofWorker.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{}
	ofWorker.Spec.PulsarFunctionRef = v1alpha1.PulsarFunctionRef{Kind: v1alpha1.WorkloadFunction, Name: "thumb"}
	input := map[string]any{"topics": []any{"public/default/images", "persistent://public/default/gone"}}
	output := map[string]any{"topic": "resized"}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		policyOf(mesh, "Function", "resize"), policyOf(mesh, "Sink", "store"), policyOf(mesh, "Source", "crawl"), deployed,
		component, ofWorker, policyOf(apps, "StatefulSet", "pf-public-default-crop"), policyOf(apps, "StatefulSet", "db"),
		workload(mesh, "Function", "resize", map[string]any{"input": input, "output": output}),
		workload(mesh, "Function", "alone", map[string]any{"input": input}),
		workload(mesh, "Sink", "store", map[string]any{"input": input, "output": map[string]any{"topic": "gone"}}),
		workload(mesh, "Source", "crawl", map[string]any{}),
		workload(mesh, "FunctionMesh", "etl", map[string]any{"functions": []any{
			map[string]any{"name": "load", "input": input, "output": output},
		}}),
		workload(apps, "Deployment", "billing", map[string]any{}),
		statefulSet("pf-public-default-crop", instanceCommand), statefulSet("db", "postgres"),
	).Build()
}

func statefulSet(name, command string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: name}}
	set.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "sidecar", Command: []string{"sleep"}}, {Name: "instance", Command: []string{"sh", "-c", command}},
	}
	return set
}

// topicsExist is an admin service that has all topics except "gone", and a function worker with one function.
func topicsExist(t *testing.T) admin {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/admin/v3/functions/public/default/thumb":
			_, _ = io.WriteString(w, `{"tenant": "public", "namespace": "default", "name": "thumb", "runtime": "JAVA",
				"parallelism": 2, "inputSpecs": {"images": {}}, "output": "resized"}`)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/partitions") &&
			!strings.Contains(r.URL.Path, "/gone/"):
			_, _ = io.WriteString(w, `{"partitions": 0}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return adminAt(t, server.URL)
}

func TestTargetGetsTheLoadInATopicThatItConsumes(t *testing.T) {
	const images, resized = "persistent://public/default/images", "persistent://public/default/resized"
	kube := targetCluster(t)
	for name, test := range map[string]struct{ target, topic, input, output, err string }{
		"a Function with an output": {"Function/resize", "images", images, resized, ""},
		"a kind in lower case":      {"function/resize", "images", images, resized, ""},
		"a Sink":                    {"Sink/store", images, images, "", ""},
		"a component of a mesh":     {"FunctionMesh/etl:Function/load", "images", images, resized, ""},
		"a StatefulSet of a worker": {"StatefulSet/pf-public-default-crop", "images", images, resized, ""},
		"a thread of a worker":      {"function:public/default/thumb", "images", images, resized, ""},
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
			"Function/alone", "images", "", "",
			`--target is "Function/alone", and no AutoscalingPolicy of namespace media scales that: create one, or name ` +
				"another target or --namespace; targets there: Deployment/billing, Function/resize, FunctionMesh/etl:Function/load, ",
		},
		"a name alone":        {"resize", "images", "", "", `--target is "resize", and no AutoscalingPolicy`},
		"a Source":            {"Source/crawl", "images", "", "", "consumes nothing there"},
		"another StatefulSet": {"StatefulSet/db", "images", "", "", "its containers do not run a Pulsar instance"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(Config{Target: Target{Namespace: "media", Name: test.target, Topic: test.topic}, Kube: kube})
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
}

func TestReplicasOfATargetAreThoseOfItsObject(t *testing.T) {
	kube := targetCluster(t)
	for target, want := range map[string]string{
		"Function/resize":                    "Function resize",
		"FunctionMesh/etl:Function/load":     "Function etl-load",
		"StatefulSet/pf-public-default-crop": "StatefulSet pf-public-default-crop",
	} {
		policy, err := Target{Namespace: "media", Name: target}.policy(t.Context(), kube)
		require.NoError(t, err)
		scaled := scaledBy(policy)
		require.Equal(t, want, scaled.GetKind()+" "+scaled.GetName())
	}
}

// TestReplicasOfAWorkersFunctionAreThoseOfItsPolicy, since there is no object in Kubernetes that has them.
func TestReplicasOfAWorkersFunctionAreThoseOfItsPolicy(t *testing.T) {
	kube := targetCluster(t)
	policy, err := Target{Namespace: "media", Name: "function:public/default/thumb"}.policy(t.Context(), kube)
	require.NoError(t, err)
	of := stage{policy: client.ObjectKeyFromObject(policy), scaled: scaledBy(policy)}
	require.Nil(t, of.scaled)
	s := observeStage(t.Context(), kube, of)
	require.Nil(t, s.Pods)
	require.Equal(t, "the policy's status has no specReplicas", s.Problem)

	policy.Status.SpecReplicas, policy.Status.RunningReplicas = new(int32(3)), new(int32(2))
	require.NoError(t, kube.Update(t.Context(), policy))
	s = observeStage(t.Context(), kube, of)
	require.Equal(t, []int{3, 3, 2}, []int{*s.SpecReplicas, *s.Pods, *s.ReadyReplicas})
	require.Empty(t, s.Problem)

	two := subject{stages: []stage{of, of}}
	s = observe(t.Context(), kube, two)
	require.Equal(t, []int{6, 6, 4}, []int{*s.SpecReplicas, *s.Pods, *s.ReadyReplicas})
	two.stages[1].policy.Name = "gone"
	s = observe(t.Context(), kube, two)
	require.Nil(t, s.SpecReplicas, "without those of the second stage")
	require.Contains(t, s.Problem, "not found")
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

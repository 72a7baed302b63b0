// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var recordTo = flag.String("record-hpa", "",
	"file for a recording of the real HPA controller, which bench/sim/baseline replays; 3 min")

// recording is the reaction of the real HPA controller to a metric; bench/sim/baseline reads it.
type recording struct {
	Kubernetes string
	Runs       []*recordedRun
}

// recordedRun is one HPA with a target of 1 per replica.
type recordedRun struct {
	Name string
	// Behavior is true if the HPA has one: the default with another window.
	Behavior          bool
	DownWindowSeconds int
	Min, Max          int
	Syncs             []recordedSync
}

// recordedSync is one sync of the controller.
type recordedSync struct {
	// Second since the start of the recording.
	Second float64
	// Value of the metric; nil if it was unavailable.
	Value *float64
	// Before is spec.replicas at the sync.
	Before int64
}

// script is the metric from a second on: up by more than the policies allow at once, around and beyond the tolerance,
// down, a spike that ends before a reaction, and a period without responses.
func script() []struct{ from, value float64 } {
	const none = -1
	return []struct{ from, value float64 }{
		{0, 1}, {8, 12}, {50, 12.9}, {56, 11}, {62, 13.4}, {68, 3}, {105, 40}, {107.5, 5}, {118, none}, {124, 5}, {
			150,
			0.2,
		}, {178, 0.2},
	}
}

const (
	recordSync       = 2 * time.Second
	plainWindow      = 31
	behaviorWindow   = 21
	recordMax        = 60
	recordStatusPoll = 50 * time.Millisecond
)

// recorder is a metrics API that records the time and user of requests, and the replicas at that time.
type recorder struct {
	mu    sync.Mutex // guards value, began and runs
	value float64
	began time.Time
	runs  map[string]*recordedRun
	c     *Cluster
	users metricsServer
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	const prefix = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/workers.test.pulsar-autoscaler.io/"
	name, isMetric := strings.CutPrefix(strings.TrimSuffix(request.URL.Path, "/"+metricName), prefix)
	if !isMetric {
		r.users.ServeHTTP(w, request)
		return
	}
	worker := workerOf(name)
	if err := r.c.Client.Get(request.Context(), client.ObjectKeyFromObject(worker), worker); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	before, _, err := unstructured.NestedInt64(worker.Object, "spec", "replicas")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	value, err := r.note(name, before)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The controller retries after a failure.
	_ = json.NewEncoder(w).Encode(metricOf(name, fmt.Sprintf("%dm", int64(value*1000))))
}

func (r *recorder) note(name string, before int64) (float64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look := recordedSync{Second: float64(time.Since(r.began).Milliseconds()) / 1000, Before: before}
	value := r.value
	if value >= 0 {
		look.Value = &value
	}
	r.runs[name].Syncs = append(r.runs[name].Syncs, look)
	if value < 0 {
		return 0, errors.New("no answer")
	}
	return value, nil
}

// TestRecordTheRealHPA records the real controller, for its model in the simulator.
func TestRecordTheRealHPA(t *testing.T) {
	if *recordTo == "" {
		t.Skip("records only with -record-hpa; bench/sim/baseline replays what was recorded")
	}
	c := startCluster(t, Config{
		HPASyncPeriod: recordSync, CRDs: []string{workerCRD},
		ControllerManagerArgs: []string{fmt.Sprintf("--horizontal-pod-autoscaler-downscale-stabilization=%ds", plainWindow)},
	})
	r := &recorder{c: c, users: metricsServer{users: map[string]bool{}}, runs: map[string]*recordedRun{
		"plain": {Name: "no behavior", DownWindowSeconds: plainWindow, Min: 1, Max: recordMax},
		"behavior": {
			Name: "the default behavior with a short window", Behavior: true, DownWindowSeconds: behaviorWindow,
			Min: 1, Max: recordMax,
		},
	}}
	serveMetrics(t, c, r)
	names := []string{"plain", "behavior"}
	r.began, r.value = time.Now(), script()[0].value
	for _, name := range names {
		createWorker(t, c, name)
		require.NoError(t, c.Client.Create(t.Context(), recordedHPA(name)))
	}
	script := script()
	last := script[len(script)-1].from
	ticker := time.NewTicker(recordStatusPoll)
	defer ticker.Stop()
	for elapsed := 0.0; elapsed < last; elapsed = time.Since(r.began).Seconds() {
		r.mu.Lock()
		for _, step := range script {
			if elapsed >= step.from {
				r.value = step.value
			}
		}
		r.mu.Unlock()
		for _, name := range names {
			followSpec(t, c, name)
		}
		<-ticker.C
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := json.MarshalIndent(recording{
		Kubernetes: c.config.Binaries.KubernetesVersion, Runs: []*recordedRun{r.runs["plain"], r.runs["behavior"]},
	}, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*recordTo, append(text, '\n'), 0o600))
}

func createWorker(t *testing.T, c *Cluster, name string) {
	t.Helper()
	require.NoError(t, c.Apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.pulsar-autoscaler.io/v1", "kind": "Worker",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": int64(1)},
	}}))
	followSpec(t, c, name)
}

// followSpec copies spec.replicas of a worker to status.replicas, as its controller would.
func followSpec(t *testing.T, c *Cluster, name string) {
	t.Helper()
	worker := workerOf(name)
	require.NoError(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(worker), worker))
	spec, _, err := unstructured.NestedInt64(worker.Object, "spec", "replicas")
	require.NoError(t, err)
	status, found, err := unstructured.NestedInt64(worker.Object, "status", "replicas")
	require.NoError(t, err)
	if found && status == spec {
		return
	}
	patch := fmt.Sprintf(`{"status":{"replicas":%d,"selector":"app=%s"}}`, spec, name)
	require.NoError(t, c.Client.Status().Patch(t.Context(), worker, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// recordedHPA has no behavior, or the default with another window.
func recordedHPA(name string) *autoscalingv2.HorizontalPodAutoscaler {
	hpa := workerHPA(name)
	hpa.Spec.MaxReplicas, hpa.Spec.Behavior = recordMax, nil
	if name == "behavior" {
		hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(behaviorWindow))},
		}
	}
	return hpa
}

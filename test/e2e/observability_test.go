// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/prometheus"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// thePrometheus scrapes the adapter of theStage and evaluates the shipped alerts.
var thePrometheus = shared.New("a real Prometheus", openPrometheus, closePrometheus)

func openPrometheus(ctx context.Context) (*prometheus.Server, error) {
	rules, err := soonRules()
	if err != nil {
		return nil, err
	}
	return scene.StartPrometheus(ctx, rules)
}

// soonRules is a file of the shipped rules with alerts that wait for a second instead of minutes: promtool tests their
// real times.
func soonRules() (path string, err error) {
	rules, err := os.ReadFile("../../deploy/monitoring/rules.yaml")
	if err != nil {
		return "", err
	}
	rules = regexp.MustCompile(`(?m)^    for: \d+m$`).ReplaceAll(rules, []byte("    for: 1s"))
	path = filepath.Join(scene.Cluster.Dir(), "rules.yaml")
	return path, os.WriteFile(path, rules, 0o600)
}

func closePrometheus(s *prometheus.Server) error {
	s.Kill()
	return nil
}

// observed starts a test that queries the Prometheus of the stage.
func observed(t *testing.T) *prometheus.Server {
	t.Helper()
	onStage(t)
	return thePrometheus.Need(t)
}

// awaitSample waits until an expression has one sample as expected.
func awaitSample(t *testing.T, f *stage.Function, expression string, holds func(value float64) bool) {
	t.Helper()
	server := observed(t)
	f.Await(t, expression, func(ctx context.Context) (bool, string, error) {
		vector, err := server.Query(ctx, expression)
		if err != nil || len(vector) != 1 {
			return false, fmt.Sprintf("%d samples", len(vector)), err
		}
		return holds(float64(vector[0].Value)), vector[0].String(), nil
	})
}

func TestObservabilityPrometheusReadsThePolicyWithTheRightsThatShip(t *testing.T) {
	t.Parallel()
	const name = "scraped"
	server := observed(t)
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond, Replicas: 2})
	addPolicy(t, newPolicy(name))
	publish(t, f, load.Constant(20))
	f.AwaitConditions(t, "Ready=True/Scaling")
	labels := fmt.Sprintf(`{namespace=%q, policy=%q}`, stage.Namespace, name)
	awaitSample(t, f, "pulsar_autoscaler_policy_desired_replicas"+labels, func(value float64) bool { return value >= 1 })
	f.Await(t, "a scrape without an error", func(ctx context.Context) (bool, string, error) {
		targets, err := server.Targets(ctx)
		if err != nil || len(targets) != 1 {
			return false, fmt.Sprintf("%d targets", len(targets)), err
		}
		return targets[0].LastError == "", targets[0].LastError, nil
	})
	for _, used := range []string{"process_resident_memory_bytes", "go_gc_gomemlimit_bytes"} { // of libraries
		awaitSample(t, f, "count("+used+")", func(value float64) bool { return value == 1 })
	}
	clientset, err := kubernetes.NewForConfig(scene.Cluster.RESTConfig())
	require.NoError(t, err)
	f.Await(t, "the aggregator to say that the adapter is available", func(ctx context.Context) (bool, string, error) {
		raw, err := clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		available := `aggregator_unavailable_apiservice{name="v1beta2.custom.metrics.k8s.io"} 0`
		return strings.Contains(string(raw), available), "it does not", err
	})
}

func TestObservabilityMetricsAreRefusedWithoutTheRole(t *testing.T) {
	t.Parallel()
	onStage(t)
	token, err := scene.Cluster.ServiceAccountToken(t.Context(), stage.Namespace, "default")
	require.NoError(t, err)
	clientset, err := kubernetes.NewForConfig(&rest.Config{
		Host: scene.Adapter.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	require.NoError(t, err)
	_, err = clientset.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

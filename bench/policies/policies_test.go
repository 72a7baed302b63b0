// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

var update = flag.Bool("update", false, "write the golden files")

func TestAFewPoliciesOnARealControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	var out bytes.Buffer
	path := filepath.Join(t.TempDir(), "policies.json")
	require.NoError(t, bench{
		policies: 8, contenders: []string{byHPA, directPush}, calm: 5 * time.Second, jsonPath: path, out: &out,
		progress: os.Stderr,
		stage: stage.Config{
			HPASyncPeriod: time.Second,
			AdapterFlags:  append(stage.PatientLease(), "--poll-interval=1s", "--rate-window=3s"),
			Progress:      os.Stderr,
		},
	}.run(t.Context()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var written report
	require.NoError(t, json.Unmarshal(text, &written))
	require.Equal(t, 8, written.Policies)
	measured := written.Contenders[byHPA]
	require.Greater(t, *measured.AllHPAsSeconds, *measured.FirstHPASeconds)
	require.Zero(t, measured.Watched)
	pushed := written.Contenders[directPush]
	require.Nil(t, pushed.AllHPAsSeconds)
	require.Equal(t, 8, pushed.Watched)
	for _, one := range written.Contenders {
		require.Equal(t, 8, one.Woken)
		require.Positive(t, *one.WokenP50Seconds)
		require.Positive(t, one.PublishedSeconds)
		require.Positive(t, one.AdapterRSSMB)
	}
	require.Contains(t, out.String(), "all HorizontalPodAutoscalers after, s")
}

func TestRunRefusesWhatMakesNoSense(t *testing.T) {
	for flags, want := range map[string]string{
		"-policies=0": "-policies is 0", "-calm=-1s": "they must be from 1 to 10000, and at least 0s",
		"-contenders=policies,keda": `-contenders names "keda": it may name policies, direct, direct_push, ` +
			`ours, ours_push, keda_pulsar`,
		"-clients=3": "-clients",
	} {
		require.ErrorContains(t, run(t.Context(), []string{flags}, io.Discard, io.Discard), want)
	}
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}

func TestReport(t *testing.T) {
	r := report{
		Kubernetes: "v1.2.3", CPUs: 2, Policies: 300, AllHPAsGoalSeconds: allHPAsGoal.Seconds(),
		Contenders: map[string]result{
			ours: {
				Setting: setting(ours), CreatedSeconds: 1.5, FirstHPASeconds: new(0.25), AllHPAsSeconds: new(155.0),
				PublishedSeconds: 0.2, AdapterRSSMB: 80, wakes: wakes{
					Woken: 300, RightSized: 290, WokenP50Seconds: new(7.0), WokenP99Seconds: new(14.2),
					WokenMaxSeconds: new(14.5),
				},
			},
			directPush: {
				Setting: setting(directPush), CreatedSeconds: 1.5, PublishedSeconds: 0.2, Watched: 300,
				AdapterRSSMB: 84, wakes: wakes{
					Woken: 300, WokenP50Seconds: new(0.41), WokenP99Seconds: new(0.98), WokenMaxSeconds: new(1.0),
				},
			},
			kedaPulsar: {Setting: setting(kedaPulsar), FirstHPASeconds: new(2.0), AllHPAsSeconds: new(148.0), wakes: wakes{
				Woken: 299, WokenP50Seconds: new(14.8), WokenP99Seconds: new(29.8),
			}},
		},
	}
	golden.Written(t, *update, "table.txt", r.writeTable)
	golden.JSON(t, *update, "report.json", r)
}

func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestACrowdNotesTheFirstReplicaOfEachAfterTheBurst(t *testing.T) {
	c := newCrowd(3)
	require.Equal(t, []string{"fn-0000", "fn-0001", "fn-0002"}, c.names)
	c.scaled("fn-0001", 2, at(-3))
	require.Equal(t, []string{"fn-0001"}, c.early(), "before the burst")
	c.scaled("fn-0001", 0, at(-2))
	require.Empty(t, c.early())

	c.burst(at(0))
	c.scaled("fn-0001", 0, at(1))
	c.scaled("fn-0001", 1, at(2))
	c.scaled("fn-0001", 7, at(3))
	c.scaled("fn-0002", 4, at(5))
	require.InDelta(t, 5.0, c.sinceBurst(at(5)), 0)
	require.Equal(t, wakes{Woken: 2, RightSized: 1, WokenP50Seconds: new(5.0)}, c.wakes(), "of three")
	require.Empty(t, c.early())
	c.scaled("fn-0000", 1, at(6))
	require.Equal(t, wakes{
		Woken: 3, RightSized: 1, WokenP50Seconds: new(5.0), WokenP99Seconds: new(6.0), WokenMaxSeconds: new(6.0),
	}, c.wakes())
}

func TestAllContendersHaveTheSameBoundsAndTheSameCooldown(t *testing.T) {
	for name, actuator := range map[string]v1alpha1.Actuator{
		byHPA: "", direct: v1alpha1.ActuatorDirect, directPush: v1alpha1.ActuatorDirect,
		ours: v1alpha1.ActuatorKEDA, oursPush: v1alpha1.ActuatorKEDA,
	} {
		p, ok := objectOf(name, "resize", "http://pulsar:1").(*v1alpha1.AutoscalingPolicy)
		require.True(t, ok, name)
		require.Equal(t, actuator, p.Spec.Actuator)
		require.Zero(t, *p.Spec.MinReplicas)
		require.Equal(t, int32(12), p.Spec.MaxReplicas)
		require.Equal(t, int32(60), *p.Spec.Behavior.ScaleDown.CooldownPeriodSeconds)
	}
	object, ok := objectOf(kedaPulsar, "resize", "http://pulsar:1").(*unstructured.Unstructured)
	require.True(t, ok)
	require.Equal(t, map[string]any{
		"scaleTargetRef": map[string]any{
			"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "name": "resize",
		},
		"minReplicaCount": int64(0), "maxReplicaCount": int64(12), "cooldownPeriod": int64(60),
		"triggers": []any{map[string]any{"type": "pulsar", "metadata": map[string]any{
			"adminURL": "http://pulsar:1", "topic": "persistent://public/default/resize-in",
			"subscription": "public/default/resize", "msgBacklogThreshold": "750",
		}}},
	}, object.Object["spec"], "all other fields have KEDA's defaults")
}

func TestASeriesIsReadByItsCompleteName(t *testing.T) {
	text := []byte("# HELP " + watched + " 7\n" + watched + "_total 8\n" + watched + " 300\n")
	metrics := stage.ReadMetrics(text)
	require.InDelta(t, 300.0, metrics.Sum(watched), 0)
	require.Zero(t, metrics.Sum(resident))
}

func TestAScaledObjectIsReadyOnceItsMetricsAreKnown(t *testing.T) {
	status := func(ready string, metrics ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"externalMetricNames": metrics,
			"conditions": []any{
				map[string]any{"type": "Active", "status": "True"},
				map[string]any{"type": "Ready", "status": ready},
			},
		}}}
	}
	require.True(t, isReady(status("True", "s0-x")))
	require.False(t, isReady(status("True")))
	require.False(t, isReady(status("Unknown", "s0-x")))
	require.False(t, isReady(&unstructured.Unstructured{Object: map[string]any{}}))
}

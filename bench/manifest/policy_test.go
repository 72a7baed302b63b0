// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const least = `apiVersion: pulsar-autoscaler.io/v1alpha1
kind: AutoscalingPolicy
metadata: {name: resize, namespace: media}
spec:
  scaleTargetRef: {apiVersion: compute.functionmesh.io/v1alpha1, kind: Function, name: resize}
  maxReplicas: 20
`

func TestPolicyHasTheDefaultsOfTheAPIServer(t *testing.T) {
	policy, err := Policy(t.Context(), strings.NewReader(least))
	require.NoError(t, err)
	require.Equal(t, "resize", policy.Name)
	require.Equal(t, int32(1), *policy.Spec.MinReplicas)
	require.Equal(t, time.Minute, policy.Spec.LatencyObjective.Duration)
	require.Equal(t, []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}, policy.Spec.Strategies)
	require.Equal(t, v1alpha1.ModeAuto, policy.Spec.Mode)
}

func TestPolicyReadsTheExamples(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	read := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if !strings.Contains(string(text), "kind: AutoscalingPolicy\n") || strings.Contains(string(text), "\n---\n") {
			continue
		}
		_, err = Policy(t.Context(), strings.NewReader(string(text)))
		require.NoError(t, err, path)
		read++
	}
	require.Positive(t, read)
}

func TestPolicyReportsProblems(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"no object":        {"- 1\n", "must be an object"},
		"no YAML":          {"a: [", "decoding YAML"},
		"a key twice":      {least + "  maxReplicas: 3\n", `key "maxReplicas" already set`},
		"another kind":     {strings.Replace(least, "Policy", "PolicySet", 1), "kind AutoscalingPolicySet: they must be"},
		"an unknown field": {least + "  treshold: 10\n", "unknown field spec.treshold"},
		"a wrong type":     {strings.Replace(least, "20", "many", 1), "spec.maxReplicas"},
		"a value too large": {
			strings.Replace(least, "20", "20000", 1), "should be less than or equal to 10000",
		},
		"a rule that fails":     {least + "  minReplicas: 30\n", "minReplicas must not be larger than maxReplicas"},
		"an objective too long": {least + "  latencyObjective: 90h\n", "latencyObjective must be from 1s to 24h"},
		"several documents":     {least + "---\n" + least, "several documents"},
		"a file that is huge":   {strings.Repeat("#", maxBytes+1), "larger than 1 MiB"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Policy(t.Context(), strings.NewReader(tt.text))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add(least)
	f.Add("---\n" + least)
	f.Add("apiVersion: 1\nkind: []\n")
	f.Fuzz(func(t *testing.T, text string) {
		policy, err := Policy(t.Context(), strings.NewReader(text))
		if err == nil {
			require.LessOrEqual(t, *policy.Spec.MinReplicas, policy.Spec.MaxReplicas)
			require.GreaterOrEqual(t, policy.Spec.LatencyObjective.Duration, time.Second)
		}
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

const step = `apiVersion: bench.pulsar-autoscaler.io/v1alpha1
kind: Scenario
metadata: {name: step}
load: {duration: 4m, step: {from: 20, to: 150, at: 60s}}
function: {serviceTime: 20ms}
latencyObjective: 30s
maxReplicas: 8
watchAfter: 60s
contenders:
- {name: policy, policy: {}}
- {name: tuned, kedaPulsar: {threshold: 750}}
- {name: fixed, fixed: {replicas: 2}}
`

// write puts a scenario and a result into a directory, and returns flags that name them.
func write(t *testing.T, result any) (args []string, out string) {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(result)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "step.yaml"), []byte(step), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "step.json"), text, 0o600))
	out = filepath.Join(dir, "replay.json")
	return []string{"-replay=" + filepath.Join(dir, "step.yaml"), "-results=" + dir, "-out=" + out}, out
}

// measured is a result of the scenario.
func measured() bench.Result {
	r := bench.Result{Scenario: "step", LoadSeconds: 240, WatchSeconds: 60, LatencyObjectiveSeconds: 30}
	r.Verdict.Outcome = bench.Met
	for _, name := range []string{"policy", "tuned", "fixed"} {
		c := bench.Contender{Name: name, Usage: bench.Usage{ReplicaHours: 2.0 * 300 / 3600, ScaleChanges: 3, MostReplicas: 2}}
		c.Messages.LateRatio = 0.5
		r.Contenders = append(r.Contenders, c)
	}
	return r
}

// compared are the rows of a result by contender.
func compared(t *testing.T, r bench.Result) map[string]replayed {
	t.Helper()
	args, path := write(t, r)
	require.NoError(t, run(t.Context(), args, io.Discard, io.Discard))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var rows []replayed
	require.NoError(t, json.Unmarshal(text, &rows))
	all := map[string]replayed{}
	for _, one := range rows {
		require.Equal(t, "step", one.Name)
		all[one.Contender] = one
	}
	require.Len(t, all, 3)
	return all
}

func TestContendersAreRealBesideSimulated(t *testing.T) {
	fixed := compared(t, measured())["fixed"]
	require.InDelta(t, 2.0*300/3600, fixed.Sim.ReplicaHours, 1e-9, "two replicas for 300 s, without the seconds before")
	require.InDelta(t, 2, fixed.Sim.MaxReplicas, 1e-9)
	require.Zero(t, fixed.Sim.Actions)
	require.Greater(t, fixed.Sim.LatePct, 40.0, "they process 100 of 150 messages/s for three minutes")
	require.Equal(t, figures{ReplicaHours: 2.0 * 300 / 3600, LatePct: 50, Actions: 3, MaxReplicas: 2}, fixed.Real)
}

func TestContendersScaleInTheSimulator(t *testing.T) {
	all := compared(t, measured())
	for _, name := range []string{"policy", "tuned"} {
		one := all[name]
		require.GreaterOrEqual(t, one.Sim.MaxReplicas, 3.0, name)
		require.LessOrEqual(t, one.SimHigh.MaxReplicas, 8.0, name)
		require.Positive(t, one.SimLow.Actions, name)
		require.Less(t, one.SimLow.ReplicaHours, one.SimHigh.ReplicaHours, "%s: the phases of polls differ", name)
	}
	require.Less(t, all["policy"].Sim.LatePct, all["tuned"].Sim.LatePct)
}

func TestKEDACoolsDownAsTheScenarioSays(t *testing.T) {
	args, _ := write(t, measured())
	p, err := open(args[0][len("-replay="):], args[1][len("-results="):])
	require.NoError(t, err)
	p.scenario.MinReplicas = new(int32(0))
	arriving := make([]float64, 300)
	arriving[30] = 100
	hours := map[time.Duration]float64{}
	for _, cooldown := range []time.Duration{time.Minute, 5 * time.Minute} {
		p.scenario.CooldownPeriod.Duration = cooldown
		hours[cooldown] = p.simulateOnce(p.scenario.Contenders[1], arriving, 7).ReplicaHours
	}
	require.Less(t, hours[time.Minute], hours[5*time.Minute]/2)
}

func TestAPipelineHasTheReplicasAndTheTimeOfItsStages(t *testing.T) {
	args, _ := write(t, measured())
	p, err := open(args[0][len("-replay="):], args[1][len("-results="):])
	require.NoError(t, err)
	arriving := p.arriving()
	policy, fixed := p.scenario.Contenders[0], p.scenario.Contenders[2]
	one := p.simulateOnce(fixed, arriving, 7)
	p.scenario.Function.Stages = 2
	two := p.simulateOnce(fixed, arriving, 7)
	require.InDelta(t, 2*one.ReplicaHours, two.ReplicaHours, 1e-9)
	require.Less(t, two.LatePct, one.LatePct-5, "the second stage adds no wait, and the objective is for both")
	require.Greater(t, two.LatePct, 20.0, "1 of 3 messages waits for up to 90 s")
	both := p.simulateOnce(policy, arriving, 7)
	require.GreaterOrEqual(t, both.MaxReplicas, 6.0)
	require.Less(t, both.LatePct, 5.0)

	p.scenario.LatencyObjective.Duration = time.Second // 2 s for both
	left := []float64{0, 0, 8, 4, 4, 4}
	share := p.lateShare([]float64{10, 10, 0, 0, 0, 0}, func(second int) float64 { return left[second] })
	require.InDelta(t, 0.5, share, 1e-9, "2 of the first second and 8 of the next")
}

func TestReplaySaysWhatToChange(t *testing.T) {
	good := measured()
	other, unmeasured, fewer := good, good, good
	other.Scenario = "wave"
	unmeasured.Verdict = bench.Verdict{Outcome: bench.NotMeasured, Reason: "fixed: a slow machine"}
	fewer.Contenders = good.Contenders[:2]
	for name, test := range map[string]struct {
		result any
		want   string
	}{
		"a result of another scenario": {other, `is of scenario "wave" with contenders ["policy" "tuned" "fixed"]`},
		"a result of fewer contenders": {fewer, `it must be of "step" with ["policy" "tuned" "fixed"]`},
		"a run that measured nothing":  {unmeasured, "could not be measured: fixed: a slow machine"},
		"a file of something else":     {map[string]any{"replicas": 3}, `unknown field "replicas"`},
	} {
		t.Run(name, func(t *testing.T) {
			args, _ := write(t, test.result)
			require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), test.want)
		})
	}
	args := []string{"-replay=step.yaml", "-results=."}
	require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), "-results or -out is empty")
	args = append(args, "-out=replay.json")
	require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), "reading scenario step.yaml")
}

func TestMessagesArriveWhenTheyAreDue(t *testing.T) {
	args, _ := write(t, measured())
	p, err := open(args[0][len("-replay="):], args[1][len("-results="):])
	require.NoError(t, err)
	arriving := p.arriving()
	require.Len(t, arriving, 300)
	require.InDelta(t, 20, arriving[30], 1)
	require.InDelta(t, 150, arriving[100], 1)
	require.Zero(t, arriving[250])
	m := p.model(p.scenario.Contenders[0], arriving, 7)
	require.Equal(t, 307, m.Seconds)
	require.Zero(t, m.Rate(6))
	require.InDelta(t, arriving[100], m.Rate(107), 0)
	require.InDelta(t, 50, m.Capacity(0), 1e-9)
	require.InDelta(t, 1+0.01*28_200/240, m.Batch, 1e-9, "a batch has what is published within 10 ms of its first")
	require.Equal(t, time.Second, m.Start)
}

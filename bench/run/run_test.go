// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

var update = flag.Bool("update", false, "write the golden files")

const text = `apiVersion: bench.pulsar-autoscaler.io/v1alpha1
kind: Scenario
metadata: {name: step}
pulsar: {adminURL: 'http://a:8080', serviceURL: 'pulsar://a:6650', inCluster: {serviceURL: 'pulsar://b:6650'}}
load: {duration: 1m, constant: {rate: 10}}
partitions: 3
function: {serviceTime: 20ms, receiverQueueSize: 40}
contenders:
- {name: ours, policy: {actuator: KEDA}}
- {name: keda, kedaPulsar: {threshold: 50}}
- {name: cpu, cpu: {}}
- {name: fixed, fixed: {replicas: 4}}
cooldownPeriod: 90s
local: {adapterFlags: [--poll-interval=1s], hpaSyncPeriod: 2s, startTime: 5s, outage: {at: 10s, for: 20s}}
`

func sampleScenario(t *testing.T) scenario.Scenario {
	t.Helper()
	s, err := scenario.Decode(strings.NewReader(text))
	require.NoError(t, err)
	return s
}

func sampleResult(t *testing.T) Result {
	t.Helper()
	s := sampleScenario(t)
	schedule, err := s.Load.Schedule(nil)
	require.NoError(t, err)
	r := newResult(s, schedule, "3f9a1c")
	r.Begun = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	_, differs := localFlags(s)
	r.Differs = append(r.Differs, differs...)
	measured := load.Result{
		Counts: load.Counts{Done: 590, Late: 5, Duplicates: new(int64(1))}, Due: 600, Published: 600, Missing: 10,
		LateRatio: 0.025, Latencies: load.Latencies{Count: 590, P50: time.Second, P99: 4 * time.Second, Max: 5 * time.Second},
		Skew: 3 * time.Millisecond,
	}
	r.Contenders = []Contender{
		{
			Name: "ours", Setting: "a policy", Begun: r.Begun, LatencyFrom: Output, Messages: measured,
			Usage: Usage{0.125, 3, 4, 3, []float64{4, 15}}, Samples: samples(), Redelivered: new(int64(7)),
		},
		{
			Name: "none", Setting: "no replica", Begun: r.Begun, LatencyFrom: Output,
			Messages: load.Result{Counts: load.Counts{Duplicates: new(int64(0))}, Due: 600},
		},
	}
	r.Verdict = judge(r.Contenders, scenario.Limits{MaxLateRatio: new(0.01), MaxScaleChanges: new(5)})
	return r
}

func samples() []Sample {
	return []Sample{
		{Seconds: 0, SpecReplicas: new(1), Pods: new(1), ReadyReplicas: new(1)},
		{Seconds: 10, SpecReplicas: new(4), Pods: new(1), ReadyReplicas: new(1), Published: 100, Done: new(int64(50))},
		{Seconds: 20, Problem: "timeout"},
		{Seconds: 30, SpecReplicas: new(4), Pods: new(4), ReadyReplicas: new(4), P50Seconds: new(0.5)},
	}
}

func TestResultIsWrittenAsTableJSONAndPage(t *testing.T) {
	r := sampleResult(t)
	golden.Equal(t, *update, "table.txt", []byte(r.Text(80)))
	golden.JSON(t, *update, "result.json", r)
	var html bytes.Buffer
	require.NoError(t, r.Page().Write(&html))
	require.Contains(t, html.String(), "Scenario step, run ")
}

func TestThePageOfOneContenderComparesWithItsMostReplicas(t *testing.T) {
	r := sampleResult(t)
	r.Contenders, r.LoadSeconds, r.WatchSeconds = r.Contenders[:1], 100, 80
	require.Equal(t, "60 s objective met for 97.5% of messages, with 38% fewer replica-hours than 4 replicas all the time",
		r.Page().Title)
}

func TestUsageCountsPodsFromSampleToSample(t *testing.T) {
	known := slices.Delete(samples(), 2, 3)
	for i := range known {
		known[i].Seconds /= 4
	}
	usage, err := UsageOf(known, 10)
	require.NoError(t, err)
	require.InDelta(t, (2.5*1+5*1+2.5*4)/3600.0, usage.ReplicaHours, 1e-9)
	usage.ReplicaHours = 0
	require.Equal(t, Usage{ScaleChanges: 1, MostReplicas: 4}, usage)

	_, err = UsageOf(samples(), 40)
	require.ErrorContains(t, err, "unknown for more than 10 s after 10 s: timeout")
	_, err = UsageOf(samples()[:2], 40)
	require.ErrorContains(t, err, "after 10 s", "at the end")
	_, err = UsageOf(nil, 40)
	require.Error(t, err)
}

func TestWakesBeginWithTheFirstMessageAtZeroReplicas(t *testing.T) {
	at := func(second float64, replicas int, published int64) Sample {
		return Sample{Seconds: second, SpecReplicas: &replicas, Published: published}
	}
	samples := []Sample{at(0, 1, 5), at(1, 0, 9), at(2, 0, 9), at(3, 0, 10), {Seconds: 4}, at(8, 0, 60), at(9, 4, 70)}
	samples = append(samples, at(20, 0, 80), at(21, 1, 81), at(30, 0, 90), at(31, 1, 90), at(40, 0, 91), at(41, 0, 92))
	require.Equal(t, []float64{6, 0}, wakes(samples), "a wake needs a message and a replica")
	require.Empty(t, wakes([]Sample{at(0, 1, 0), at(1, 2, 9)}))
}

func TestVerdict(t *testing.T) {
	good := Contender{Name: "ours", Messages: load.Result{
		Counts: load.Counts{Done: 1000, Duplicates: new(int64(0))}, Due: 1000,
		Latencies: load.Latencies{P99: time.Second}, LateRatio: 0.01,
	}, Usage: Usage{ReplicaHours: 0.5, ScaleChanges: 3}}
	limits := scenario.Limits{
		MaxLateRatio: new(0.01), MaxP99: &metav1.Duration{Duration: time.Second}, MaxReplicaHours: new(0.5),
		MaxScaleChanges: new(3), MaxDuplicates: new(int64(0)),
	}
	for name, test := range map[string]struct {
		edit func(all []Contender)
		want Outcome
		code int
	}{
		"limits that are just met":        {func([]Contender) {}, Met, 0},
		"late messages":                   {func(all []Contender) { all[0].Messages.LateRatio = 0.011 }, Missed, 1},
		"one slow in a hundred":           {func(all []Contender) { all[0].Messages.Latencies.P99 *= 2 }, Missed, 1},
		"missing results":                 {func(all []Contender) { all[0].Messages.Done = 900 }, Missed, 1},
		"too many replicas":               {func(all []Contender) { all[0].Usage.ReplicaHours = 0.51 }, Missed, 1},
		"too many changes":                {func(all []Contender) { all[0].Usage.ScaleChanges = 4 }, Missed, 1},
		"duplicates":                      {func(all []Contender) { all[0].Messages.Duplicates = new(int64(1)) }, Missed, 1},
		"another contender is not judged": {func(all []Contender) { all[1].Messages.LateRatio = 1 }, Met, 0},
		"the tool was the bottleneck":     {func(all []Contender) { all[1].Messages.Bottleneck = "slow" }, NotMeasured, 3},
		"replicas that did nothing":       {func(all []Contender) { all[1].Stalled = "no result" }, NotMeasured, 3},
	} {
		t.Run(name, func(t *testing.T) {
			all := []Contender{good, good}
			test.edit(all)
			v := judge(all, limits)
			require.Equal(t, test.want, v.Outcome)
			require.Equal(t, test.code, v.ExitCode())
		})
	}
	require.Equal(t, "the scenario has no limits", judge([]Contender{good}, scenario.Limits{}).Text())
}

func TestContendersGetWhatTheirUserWouldCreate(t *testing.T) {
	r := newRunner(Config{Scenario: sampleScenario(t)})
	r.id, r.namespace = "3f9a1c", "pap-bench-3f9a1c"
	var objects []any
	for _, e := range r.entrants() {
		objects = append(objects, e.setting())
		if object := e.autoscaler(); object != nil {
			objects = append(objects, object)
		}
	}
	objects = append(objects, r.entrants()[0].functionObject().Object, r.entrants()[0].connection())
	golden.JSON(t, *update, "objects.json", objects)
}

func TestContendersWithoutFunctionMeshScaleADeployment(t *testing.T) {
	s := sampleScenario(t)
	s.Function.Kind, s.Function.Image = scenario.KindDeployment, "registry.example.com/kubectl-pap:v1"
	s.Pulsar.AuthSecret = "pulsar/bench"
	r := newRunner(Config{Scenario: s})
	r.id, r.namespace = "3f9a1c", "pap-bench-3f9a1c"
	objects := []any{r.entrants()[0].workload().Object}
	for _, e := range r.entrants()[:3] {
		objects = append(objects, e.autoscaler())
	}
	golden.JSON(t, *update, "deployment.json", objects)
}

func TestAStageConsumesWhatTheOneBeforePublishes(t *testing.T) {
	s := sampleScenario(t)
	s.Function.Stages, s.Contenders[0].Policy.Forecast = 2, "Off"
	r := newRunner(Config{Scenario: s})
	r.id, r.namespace = "3f9a1c", "pap-bench-3f9a1c"
	e := r.entrants()[0]
	const topics = "persistent://public/default/pap-bench-3f9a1c-ours-"
	require.Equal(t, []string{topics + "in", topics + "out", topics + "out-2"}, e.topics())
	of := e.subject()
	require.Equal(t, topics+"in", of.input)
	require.Equal(t, topics+"out-2", of.output)
	require.Equal(t, 2*time.Minute, of.objective)
	require.Len(t, of.stages, 2)
	for i, name := range []string{"ours-3f9a1c", "ours-3f9a1c-2"} {
		one, at := e.stages()[i], of.stages[i]
		require.Equal(t, []string{e.topics()[i], name, name, name},
			[]string{at.input, at.subscription, at.policy.Name, at.scaled.GetName()})
		spec := one.policy().Spec
		require.Equal(t, name, spec.ScaleTargetRef.Name)
		require.Equal(t, v1alpha1.ForecastOff, spec.Forecast.Mode)
		require.Contains(t, one.setting(), ", forecast Off")
	}
}

func TestFlagsThatDifferAreTold(t *testing.T) {
	s := sampleScenario(t)
	args, differs := localFlags(s)
	require.Equal(t, []string{"-keda", "-hpa-sync=2s", "-adapter-flag=--poll-interval=1s", "-outages"}, args)
	require.Len(t, differs, 3)
	s.Local, s.Contenders = scenario.Local{HPASyncPeriod: metav1.Duration{Duration: 15 * time.Second}}, nil
	args, differs = localFlags(s)
	require.Equal(t, []string{"-hpa-sync=15s"}, args)
	require.Empty(t, differs)
}

func TestAReceiveQueueThatIsNotPulsarsIsTold(t *testing.T) {
	for size, differs := range map[int]int{0: 0, 1000: 0, 40: 1} {
		s := sampleScenario(t)
		s.Function.ReceiverQueueSize = size
		require.Len(t, newResult(s, load.Schedule{}, "3f9a1c").Differs, differs, size)
	}
}

func TestAnOutageBeginsAndEndsAtItsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		at := map[bool]time.Duration{}
		r := newRunner(Config{Scenario: sampleScenario(t), Progress: io.Discard, Break: func(broken bool) error {
			at[broken] = time.Since(begun)
			return nil
		}})
		require.NoError(t, r.outage(t.Context()))
		require.Equal(t, map[bool]time.Duration{true: 10 * time.Second, false: 30 * time.Second}, at)
		clear(at)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		begun = time.Now()
		require.NoError(t, r.outage(ctx))
		require.Equal(t, 15*time.Second, at[false], "the next contender finds no outage")
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// truth is what happened to a policy in each second since begin.
type truth struct {
	late              []bool
	replicas, backlog []int32
	load              []float64
	// unknown is a second without data, and recommend one in mode Recommend.
	unknown, recommend func(second int) bool
}

func never(int) bool { return false }

const daySeconds = 24 * 3600

// simulatedDays runs a policy on a load that rises above what maxReplicas can process, but on each third day.
func simulatedDays(days int) truth {
	objective := 30 * time.Second
	scenario := model.Scenario{
		Name: "days", Seconds: days * daySeconds, Capacity: model.Constant(10), Objective: objective,
		Start: 20 * time.Second, Initial: 1, Min: 1, Max: 4, Partitions: 1,
		Rate: func(second float64) float64 {
			day, of := math.Modf(second / daySeconds)
			peak := 42.0
			if math.Mod(day, 3) == 2 {
				peak = 15
			}
			return peak * math.Pow(math.Sin(math.Pi*of), 8)
		},
	}
	system := model.New(scenario, 1)
	controller := baseline.Policy(v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{
		MinReplicas: new(int32(1)), MaxReplicas: 4, LatencyObjective: metav1.Duration{Duration: objective},
	}})(system.Scenario())
	happened := truth{unknown: never, recommend: never}
	for second := range scenario.Seconds {
		system.Step()
		system.Scale(controller.Replicas(system))
		happened.load = append(happened.load, scenario.Rate(float64(second)))
	}
	score := system.Score()
	happened.replicas, happened.backlog = score.Trace, score.Backlog
	for _, age := range score.Oldest {
		happened.late = append(happened.late, float64(age) > objective.Seconds())
	}
	return happened
}

// series are those that Prometheus would compute of the truth, with a sample of the states for each minute.
func (tr truth) series(name string) map[string]func(int) float64 {
	labels := "|namespace=media,policy=" + name
	over := func(every int, value func(second int) float64) func(int) float64 {
		return func(end int) float64 {
			sum, some := 0.0, false
			for second := (end - 60) * 60; second < end*60; second += every {
				if second >= 0 && second < len(tr.late) && !tr.unknown(second) {
					sum, some = sum+value(second), true
				}
			}
			if !some {
				return math.NaN()
			}
			return sum
		}
	}
	is := func(yes bool) float64 { return map[bool]float64{true: 1}[yes] }
	absentAtZero := func(of func(int) float64) func(int) float64 {
		return func(end int) float64 {
			if value := of(end); value > 0 {
				return value
			}
			return math.NaN()
		}
	}
	const states = "(max by (namespace, policy) (" + policyPrefix
	return map[string]func(int) float64{
		"increase(" + policyPrefix + "late_seconds_total" + labels: over(1, func(s int) float64 { return is(tr.late[s]) }),
		"sum_over_time" + states + "objective_met" + labels:        over(60, func(s int) float64 { return is(!tr.late[s]) }),
		"increase(" + policyPrefix + "replica_seconds_total" + labels: over(1, func(s int) float64 {
			return float64(tr.replicas[s])
		}),
		"count_over_time" + states + "running_replicas" + labels: over(60, func(int) float64 { return 1 }),
		"max_over_time(" + policyPrefix + "running_replicas" + labels: func(end int) float64 {
			peak := math.NaN()
			for second := max(0, (end-60)*60); second < min(len(tr.late), end*60); second++ {
				if replicas := float64(tr.replicas[second]); !tr.unknown(second) && !(replicas <= peak) {
					peak = replicas
				}
			}
			return peak
		},
		"max_over_time(" + policyPrefix + "info" + labels: absentAtZero(over(60, func(s int) float64 {
			return is(tr.recommend(s))
		})),
		policyPrefix + "condition" + labels + ",reason=TooManyReplicas": absentAtZero(over(60, func(s int) float64 {
			return is(tr.late[s])
		})),
	}
}

// outcome is the truth about the seconds in mode Recommend, or the others.
func (tr truth) outcome(recommend bool) Outcome {
	return tr.days(0, len(tr.late)/daySeconds, recommend)
}

// days is the truth about the days from one number up to another.
func (tr truth) days(from, to int, recommend bool) (o Outcome) {
	known, peaks := map[int]float64{}, map[int]float64{}
	for second := from * daySeconds; second < min(to*daySeconds, len(tr.late)); second++ {
		late := tr.late[second]
		if tr.unknown(second) || tr.recommend(second) != recommend {
			continue
		}
		replicas, day := float64(tr.replicas[second]), second/daySeconds
		o.KnownSeconds, o.RunningSeconds, o.ReplicaSeconds = o.KnownSeconds+1, o.RunningSeconds+1, o.ReplicaSeconds+replicas
		known[day], peaks[day] = known[day]+1, max(peaks[day], replicas)
		if late {
			o.LateSeconds++
		}
	}
	for day, seconds := range known {
		o.PeakSeconds += seconds * peaks[day]
	}
	return o
}

func TestOutcomesOfASimulatedMonthAreTrue(t *testing.T) {
	const simulated, days = 3, 30
	resize := simulatedDays(simulated)
	resize.late = slices.Repeat(resize.late, days/simulated)
	resize.replicas = slices.Repeat(resize.replicas, days/simulated)
	resize.load = slices.Repeat(resize.load, days/simulated)
	resize.backlog = slices.Repeat(resize.backlog, days/simulated)
	outage, moved, young := resize, resize, resize
	outage.unknown = func(second int) bool { // three hours, from half past eleven on
		return second >= 5*daySeconds+41_400 && second < 5*daySeconds+52_200
	}
	moved.recommend = func(second int) bool { return second < 10*daySeconds }
	young.unknown = func(second int) bool { return second < 20*daySeconds }
	fake := &fakePrometheus{series: map[string]func(int) float64{}}
	policies := map[string]truth{"resize": resize, "outage": outage, "moved": moved, "young": young}
	var all []truth
	for name, happened := range policies {
		maps.Copy(fake.series, happened.series(name))
		all = append(all, happened)
	}
	maps.Copy(fake.series, sums(all))
	end := begin.Add(days*day + 20*time.Minute) // the hour that is not over yet is left out
	c := OutcomeConfig{Server: Server{URL: serve(t, fake)}, From: begin, To: end, Load: true}
	outcomes, err := ReadOutcomes(t.Context(), c)
	require.NoError(t, err)
	found := outcomes.Policies
	require.LessOrEqual(t, fake.points, 24, "a day at once")
	require.Len(t, fake.queries, days*10, "however many policies there are")
	requireCourse(t, all, outcomes.Course)
	require.Len(t, found, len(policies))
	episodes := 0
	for second := 1; second < len(resize.late); second++ {
		if resize.late[second] != resize.late[second-1] {
			episodes++
		}
	}
	require.Greater(t, episodes, days, "messages are late on most days")
	require.Less(t, episodes, 50*days)
	for _, p := range found {
		for _, half := range []struct {
			got, want Outcome
		}{{p.Scaled, policies[p.Name].outcome(false)}, {p.Recommend, policies[p.Name].outcome(true)}} {
			got, want := half.got, half.want
			require.InDelta(t, want.LateSeconds, got.LateSeconds, 1e-6, p.Name)
			require.InDelta(t, want.ReplicaSeconds, got.ReplicaSeconds, 1e-6, p.Name)
			require.InDelta(t, want.RunningSeconds, got.RunningSeconds, 1e-6, p.Name)
			require.InDelta(t, want.PeakSeconds, got.PeakSeconds, 1e-6, p.Name)
			require.InDelta(t, want.KnownSeconds, got.KnownSeconds, 60*float64(episodes), "%s: a minute an episode", p.Name)
		}
		require.Len(t, p.Days, days)
		for number, got := range p.Days {
			want := policies[p.Name].days(number, number+1, false)
			require.InDelta(t, want.LateSeconds, got.LateSeconds, 1e-6, "%s on day %d", p.Name, number)
			require.InDelta(t, want.PeakSeconds, got.PeakSeconds, 1e-6, "%s on day %d", p.Name, number)
			require.Equal(t, want.KnownSeconds == 0, got.KnownSeconds == 0, "%s on day %d", p.Name, number)
		}
		late := p.LateReasons["TooManyReplicas"]
		require.InDelta(t, p.Scaled.LateSeconds, late, 60*float64(episodes), p.Name)
	}
	require.Equal(t, []string{"moved", "outage", "resize", "young"}, []string{
		found[0].Name, found[1].Name, found[2].Name, found[3].Name,
	})
	require.Greater(t, found[2].Scaled.LateSeconds, 1000.0)
	require.Less(t, found[2].Scaled.PeakSeconds, 4*found[2].Scaled.RunningSeconds, "some days have a lower peak")
}

func TestOutcomesNameWhatIsMissing(t *testing.T) {
	failing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"status":"error","errorType":"execution","error":"too many samples"}`, http.StatusUnprocessableEntity)
	})
	for name, tt := range map[string]struct {
		handler http.Handler
		length  time.Duration
		want    string
	}{
		"no policies":       {&fakePrometheus{}, 48 * time.Hour, "let it scrape the adapter"},
		"a time too short":  {&fakePrometheus{}, time.Minute, "the time is 1m0s long: it must be from 10m0s"},
		"a time too long":   {&fakePrometheus{}, 63 * day, "to 1488h0m0s"},
		"an error response": {failing, 48 * time.Hour, "too many samples"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadOutcomes(t.Context(), OutcomeConfig{
				Server: Server{URL: serve(t, tt.handler)}, From: begin, To: begin.Add(tt.length),
			})
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestOutcomesOfANamespaceAndAShortTime(t *testing.T) {
	fake := &fakePrometheus{series: map[string]func(int) float64{
		"increase(" + policyPrefix + "replica_seconds_total|namespace=media,policy=resize": constant(600),
	}}
	found, err := ReadOutcomes(t.Context(), OutcomeConfig{
		Server: Server{URL: serve(t, fake)}, Namespace: `me"dia`, From: begin, To: begin.Add(time.Hour), Load: true,
	})
	require.NoError(t, err)
	require.InDelta(t, 12*600, found.Policies[0].Scaled.ReplicaSeconds, 1e-9, "in steps of 5 minutes")
	require.Zero(t, found.Policies[0].Scaled.KnownSeconds)
	require.Len(t, found.Course, 12)
	require.Equal(t, Step{Start: begin.Add(55 * time.Minute)}, found.Course[11], "unknown is not 0")
	for _, query := range slices.Compact(slices.Sorted(slices.Values(fake.queries))) {
		require.Contains(t, query, `namespace="me\"dia"}`)
		require.True(t, strings.Contains(query, "[5m]") || strings.Contains(query, "[5m:1m]"), query)
	}
}

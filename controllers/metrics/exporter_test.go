// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// gatherer has the series of the records one second after noon, and checks that they are consistent.
func gatherer(t testing.TB, level metrics.Level, all ...*metrics.Record) prometheus.Gatherer {
	t.Helper()
	now := func() time.Time { return fixture.Noon().Add(time.Second) }
	e := metrics.NewExporter(func() []*metrics.Record { return all }, level, now)
	return prometheus.Gatherers{prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return slices.Collect(e.Families()), nil
	})}
}

// exposition is the response to a scrape, without help and types.
func exposition(t testing.TB, g prometheus.Gatherer) []string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var text strings.Builder
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&text, family)
		require.NoError(t, err)
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "pulsar_autoscaler_policy_"))
		}
	}
	return lines
}

// busy is a policy at its maximum, with a hold and late messages.
func busy() (plan.Observed, *policy.Decision, v1alpha1.AutoscalingPolicyStatus) {
	p := &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "resize"}, Spec: fixture.CapacitySpec(),
	}
	p.Spec.ObjectivePercent = new(int32(98))
	reading := fixture.Reading(1200, 40)
	reading.OldestAge, reading.Instances.Busy = backlog.Known(90), backlog.Known(0.97)
	reading.Coverage = backlog.Coverage{Topics: 4, Known: 4}
	o := plan.Observed{
		Subject:  plan.Subject{Now: fixture.Noon(), Policy: p},
		Measured: plan.Measured{Reading: &reading, PollInterval: 10 * time.Second},
	}
	d := &policy.Decision{
		Time: fixture.Noon(), Replicas: 50, Wanted: 61, Strategy: v1alpha1.StrategyCapacity,
		Wait: backlog.Known(30), Late: backlog.Known(0.03),
		Hold: &policy.Hold{Reason: policy.HoldNotStarting},
		Next: &forecast.Next{Begin: fixture.Noon().Add(time.Minute), PerSecond: 400, Foreseen: 38, Of: 40},
	}
	status := v1alpha1.AutoscalingPolicyStatus{
		DesiredReplicas: new(int32(50)), SpecReplicas: new(int32(48)), RunningReplicas: new(int32(47)),
		Actuator: &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA},
		Capacity: &v1alpha1.Capacity{MessagesPerSecond: v1alpha1.NewRate(12.5), UncertaintyPercent: new(int32(8))},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScaling},
			{Type: v1alpha1.ConditionObjectiveMet, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTooManyReplicas},
			{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTooManyReplicas},
		},
	}
	return o, d, status
}

func first(o plan.Observed, d *policy.Decision, after v1alpha1.AutoscalingPolicyStatus) *metrics.Record {
	var none *metrics.Record
	return none.Next(o, d, after, false)
}

func TestEverySeriesOfAPolicyIsShown(t *testing.T) {
	before := first(busy())
	o, d, status := busy()
	o.Now = o.Now.Add(time.Second)
	status.SpecReplicas = new(int32(50))
	o.ScaledBy = string(v1alpha1.ActuatorHPA)
	const own = `{namespace="media",policy="resize"} `
	require.Equal(t, []string{
		"busy_ratio" + own + "0.97",
		"capacity_messages_per_second" + own + "12.5",
		"capacity_uncertainty_ratio" + own + "0.08",
		`condition{namespace="media",policy="resize",reason="TooManyReplicas",status="False",type="ObjectiveMet"} 1`,
		`condition{namespace="media",policy="resize",reason="TooManyReplicas",status="True",type="ScalingLimited"} 1`,
		"consumers" + own + "1",
		"coverage_ratio" + own + "1",
		"decision_age_seconds" + own + "1",
		"delayed_messages" + own + "0",
		"desired_replicas" + own + "50",
		"discounted_messages" + own + "0",
		"forecast_foreseen_ratio" + own + "0.95",
		"forecast_publish_rate" + own + "400",
		"forecast_seconds" + own + "59",
		`held{namespace="media",policy="resize",reason="ReplicasNotStarting"} 1`,
		`info{actuator="HPA",mode="Auto",namespace="media",policy="resize",target="resize",target_kind="Function"} 1`,
		"late_seconds_total" + own + "0",
		"latency_objective_seconds" + own + "60",
		`limited{by="maxReplicas",namespace="media",policy="resize"} 1`,
		"max_replicas" + own + "50",
		"min_replicas" + own + "1",
		"objective_burn_rate" + own + "1.5",
		"objective_met" + own + "0",
		"oldest_message_age_seconds" + own + "90",
		"process_rate" + own + "40",
		"publish_rate" + own + "40",
		"reading_age_seconds" + own + "1",
		"ready_messages" + own + "1200",
		"replica_seconds_total" + own + "47",
		"running_replicas" + own + "47",
		`scale_events_total{by="HPA",direction="Up",namespace="media",policy="resize"} 1`,
		"spec_replicas" + own + "50",
		"starved_replicas" + own + "0",
		"unacked_messages" + own + "0",
		"wait_seconds" + own + "30",
		"wanted_replicas" + own + "61",
	}, exposition(t, gatherer(t, metrics.Full, before.Next(o, d, status, false))))
}

func TestStarvedReplicasAreThoseThatTheConditionReports(t *testing.T) {
	for name, test := range map[string]struct {
		reason  string
		holding backlog.Measurement
		want    []string
	}{
		"some have no messages":              {v1alpha1.ReasonReplicasStarved, backlog.Known(3), []string{"9"}},
		"others are late for another reason": {v1alpha1.ReasonCatchingUp, backlog.Known(3), []string{"0"}},
		"it is unknown who holds them": {
			v1alpha1.ReasonReplicasStarved, backlog.Unknown(backlog.ErrNotRequested), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, status := busy()
			o.Reading.Consumers, o.Reading.Holding = backlog.Known(12), test.holding
			status.Conditions[1].Reason = test.reason
			var found []string
			for _, line := range exposition(t, gatherer(t, metrics.Full, first(o, d, status))) {
				if value, starved := strings.CutPrefix(line, `starved_replicas{namespace="media",policy="resize"} `); starved {
					found = append(found, value)
				}
			}
			require.Equal(t, test.want, found)
		})
	}
}

func TestWhatIsUnknownHasNoSample(t *testing.T) {
	o, d, status := busy()
	partial := fixture.Partial(*o.Reading, backlog.ErrNoData)
	tests := map[string]struct {
		change func()
		absent []string
	}{
		"without a reading": {
			func() { o.Reading = nil },
			[]string{"ready_messages", "publish_rate", "process_rate", "wait_seconds"},
		},
		"with a lower bound": {func() { o.Reading = &partial }, []string{"ready_messages", "publish_rate", "process_rate"}},
		"without a decision": {
			func() { d, status.DesiredReplicas = nil, nil },
			[]string{"desired_replicas", "wait_seconds", "held"},
		},
		"without a capacity":   {func() { status.Capacity = nil }, []string{"capacity_messages_per_second"}},
		"with unknown pods":    {func() { status.RunningReplicas = nil }, []string{"running_replicas"}},
		"without a target":     {func() { status.SpecReplicas = nil }, []string{"spec_replicas"}},
		"without a condition":  {func() { status.Conditions = nil }, []string{"objective_met", "limited", "condition"}},
		"with nothing in hold": {func() { d.Hold = nil }, []string{"held"}},
		"with all in time":     {func() { o.Policy.Spec.ObjectivePercent = nil }, []string{"objective_burn_rate"}},
		"with no forecast":     {func() { d.Next = nil }, []string{"forecast_publish_rate", "forecast_seconds"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o, d, status = busy()
			tt.change()
			lines := strings.Join(exposition(t, gatherer(t, metrics.Essential, first(o, d, status))), "\n")
			for _, series := range tt.absent {
				require.NotContains(t, lines, "\n"+series+"{")
			}
			require.Contains(t, lines, "min_replicas{")
		})
	}
}

func TestTimeIsCountedByWhatWasFoundBefore(t *testing.T) {
	o, d, status := busy()
	d.Service = policy.Service{Objective: policy.ObjectiveMissed, At: o.Now}
	o.Target = &plan.Target{Replicas: new(int32(48))}
	late := report.History{}.Decided(o, d).Late()
	var none *metrics.Record
	record := none.Next(o, d, status, late)
	tests := map[string]struct {
		elapsed  time.Duration
		late     string
		replicas string
	}{
		"ten seconds":      {10 * time.Second, "10", "470"},
		"a gap is bounded": {time.Hour, "30", "1410"},
		"a clock set back": {-time.Minute, "0", "0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			next := o
			next.Now = o.Now.Add(tt.elapsed)
			lines := exposition(t, gatherer(t, metrics.Essential, record.Next(next, d, status, late)))
			require.Contains(t, lines, `late_seconds_total{namespace="media",policy="resize"} `+tt.late)
			require.Contains(t, lines, `replica_seconds_total{namespace="media",policy="resize"} `+tt.replicas)
		})
	}
}

func TestALevelHasItsSeries(t *testing.T) {
	for level, want := range map[metrics.Level]int{metrics.Off: 0, metrics.Essential: 20, metrics.Full: 35} {
		t.Run(string(level), func(t *testing.T) {
			count, err := testutil.GatherAndCount(gatherer(t, level, first(busy())))
			require.NoError(t, err)
			require.Equal(t, want, count)
		})
	}
}

// mostBytes bounds a scrape of the essential series of 10,000 policies.
const mostBytes = 25 << 20

func fleet(count int) []*metrics.Record {
	all := make([]*metrics.Record, count)
	for i := range all {
		o, d, status := busy()
		o.Policy.Namespace, o.Policy.Name = fmt.Sprintf("team-%03d-media", i%200), fmt.Sprintf("resize-thumbnails-%05d", i)
		o.Policy.Spec.ScaleTargetRef.Name = o.Policy.Name
		all[i] = first(o, d, status)
	}
	return all
}

func scrape(t testing.TB, e *metrics.Exporter) (size int) {
	t.Helper()
	var text counter
	for family := range e.Families() {
		_, err := expfmt.MetricFamilyToText(&text, family)
		require.NoError(t, err)
	}
	return int(text)
}

// counter counts the bytes written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestTenThousandPoliciesFitAScrape(t *testing.T) {
	all := fleet(10_000)
	e := metrics.NewExporter(func() []*metrics.Record { return all }, metrics.Essential, time.Now)
	require.LessOrEqual(t, scrape(t, e), mostBytes)
}

func BenchmarkScrapeOfTenThousandPolicies(b *testing.B) {
	all := fleet(10_000)
	e := metrics.NewExporter(func() []*metrics.Record { return all }, metrics.Essential, time.Now)
	b.ReportAllocs()
	for b.Loop() {
		b.ReportMetric(float64(scrape(b, e)), "bytes/scrape")
	}
}

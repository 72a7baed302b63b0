// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Outcome is what happened in a period, as far as it is known.
type Outcome struct {
	// KnownSeconds in which it is known whether messages met the latency objective, and LateSeconds in which they did not.
	KnownSeconds, LateSeconds float64
	// WholeSeconds in which both are known: that, and the running replicas.
	WholeSeconds float64
	// RunningSeconds in which the running replicas are known, and ReplicaSeconds: their sum over that time. PeakSeconds
	// is that sum if the largest number of each day (UTC) had run all the time.
	RunningSeconds, ReplicaSeconds, PeakSeconds float64
}

// Plus is the sum of two outcomes.
func (o Outcome) Plus(other Outcome) Outcome {
	return Outcome{
		KnownSeconds: o.KnownSeconds + other.KnownSeconds, LateSeconds: o.LateSeconds + other.LateSeconds,
		RunningSeconds: o.RunningSeconds + other.RunningSeconds, ReplicaSeconds: o.ReplicaSeconds + other.ReplicaSeconds,
		PeakSeconds: o.PeakSeconds + other.PeakSeconds, WholeSeconds: o.WholeSeconds + other.WholeSeconds,
	}
}

// PolicyOutcome is the outcome of a policy.
type PolicyOutcome struct {
	Namespace, Name string
	// Scaled is the outcome while the policy scaled. Recommend is that of the steps in which its mode was Recommend or
	// Paused, when something else did.
	Scaled, Recommend Outcome
	// LateReasons are the seconds in which condition ObjectiveMet was False, by its reason, while the policy scaled.
	LateReasons map[string]float64
	// Days has Scaled of each day (UTC) of the period.
	Days []Outcome
}

// Outcomes of a period.
type Outcomes struct {
	// Policies are ordered by namespace and name.
	Policies []PolicyOutcome
	// Course has all steps of the period.
	Course []Step
}

// OutcomeConfig configures ReadOutcomes.
type OutcomeConfig struct {
	Server Server
	// Namespace of the policies; empty for all.
	Namespace string
	From, To  time.Time
	// Load is whether the course has the load and the backlog, which takes more requests.
	Load bool
}

const (
	day = 24 * time.Hour
	// longStep is the time of one sum, and shortStep that of a period below a day.
	longStep, shortStep = time.Hour, 5 * time.Minute
	// sampled is how often the states of a policy are looked at.
	sampled = time.Minute
)

// step of the sums.
func (c OutcomeConfig) step() time.Duration {
	if c.To.Sub(c.From) < day {
		return shortStep
	}
	return longStep
}

// Period is the time that the outcomes are of: whole steps.
func (c OutcomeConfig) Period() (from, to time.Time) {
	return c.From.Truncate(c.step()), c.To.Truncate(c.step())
}

func (c OutcomeConfig) validate() error {
	if from, to := c.Period(); to.Sub(from) < 2*shortStep || to.Sub(from) > longest {
		return fmt.Errorf("the time is %s long: it must be from %s to %s", c.To.Sub(c.From), 2*shortStep, longest)
	}
	return nil
}

// ReadOutcomes reads the outcomes of policies.
func ReadOutcomes(ctx context.Context, c OutcomeConfig) (Outcomes, error) {
	if err := c.validate(); err != nil {
		return Outcomes{}, err
	}
	api, err := c.Server.connect()
	if err != nil {
		return Outcomes{}, err
	}
	from, to := c.Period()
	found := outcomes{
		policies: map[[2]string]PolicyOutcome{}, course: course{}, days: int((to.Sub(from.Truncate(day)) + day - 1) / day),
	}
	// A request for each day bounds the answers, and the largest number of replicas is that of a day.
	for start := from.Truncate(day); start.Before(to); start = start.Add(day) {
		q := querier{api: api, from: from, to: to, step: c.step(), wait: firstWait}
		if start.After(from) {
			q.from = start
		}
		if end := start.Add(day); end.Before(to) {
			q.to = end
		}
		steps, err := c.readSteps(ctx, q)
		if err != nil {
			return Outcomes{}, err
		}
		found.addDay(int(start.Sub(from.Truncate(day))/day), steps, c.step().Seconds())
		if c.Load {
			if err := c.readLoad(ctx, q, found.course); err != nil {
				return Outcomes{}, err
			}
		}
	}
	if len(found.policies) == 0 {
		return Outcomes{}, fmt.Errorf("finding policies: Prometheus has no series %sobjective_met and %srunning_replicas "+
			"between %s and %s: let it scrape the adapter, with --policy-metrics=Essential (adapter.policyMetrics in the chart)",
			policyPrefix, policyPrefix, from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	policies := slices.SortedFunc(maps.Values(found.policies), func(a, b PolicyOutcome) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return Outcomes{Policies: policies, Course: found.course.between(from, to, c.step())}, nil
}

// policyStep is a step of a policy, by its last moment.
type policyStep struct {
	namespace, name string
	end             int64
}

func (s policyStep) compare(other policyStep) int {
	return cmp.Or(
		cmp.Compare(s.namespace, other.namespace), cmp.Compare(s.name, other.name), cmp.Compare(s.end, other.end),
	)
}

// totals of a policy in a step.
type totals struct {
	late, met, running, replicas, peak float64
	recommend                          bool
	reasons                            map[string]float64
}

// replicaTime is how much of the step the replicas are known for, and their sum over that time. The counter covers gaps
// between two scrapes too, of which the largest number makes up the least.
func (t totals) replicaTime(seconds float64) (running, replicas float64) {
	if t.peak == 0 {
		return min(seconds, t.running), t.replicas
	}
	running = min(seconds, max(t.running, t.replicas/t.peak))
	return running, min(t.replicas, running*t.peak)
}

// outcomeQuery is an expression, and what its value means.
type outcomeQuery struct {
	expression string
	set        func(t *totals, labels model.Metric, value float64)
}

// outcomeQueries are evaluated at the end of each step. Counters are exact, and start at 0 in a series of their own
// when another replica of the adapter takes over. Each counts once, however many jobs scrape it. Of states there is a
// sample for each minute.
func outcomeQueries(namespace string, step time.Duration) []outcomeQuery {
	series := func(name, matchers string) string { return policySelector(namespace, name, matchers) }
	over := model.Duration(step).String()
	sum := func(name string) string {
		return "sum by (namespace, policy) (max by (namespace, policy, instance) (increase(" + series(name, "") +
			"[" + over + "])))"
	}
	largest := func(of string) string { return "max by (namespace, policy) (max_over_time(" + of + "[" + over + "]))" }
	states := func(function, labels, of string) string {
		return fmt.Sprintf("%s(max by (%s) (%s)[%s:%s])", function, labels, of, over, model.Duration(sampled))
	}
	const policy = "namespace, policy"
	// While the backlog is unknown, the objective is not met, and nothing is known to be late.
	missed := series("condition", `type="ObjectiveMet",status="False",`) + " unless on (namespace, policy) " +
		series("condition", `type="BacklogKnown",`)
	return []outcomeQuery{
		{sum("late_seconds_total"), func(t *totals, _ model.Metric, v float64) { t.late = v }},
		{
			states("sum_over_time", policy, series("objective_met", "")),
			func(t *totals, _ model.Metric, v float64) { t.met = v * sampled.Seconds() },
		},
		{sum("replica_seconds_total"), func(t *totals, _ model.Metric, v float64) { t.replicas = v }},
		{
			states("count_over_time", policy, series("running_replicas", "")),
			func(t *totals, _ model.Metric, v float64) { t.running = v * sampled.Seconds() },
		},
		{largest(series("running_replicas", "")), func(t *totals, _ model.Metric, v float64) { t.peak = v }},
		{
			largest(series("info", `mode=~"Recommend|Paused",`)),
			func(t *totals, _ model.Metric, _ float64) { t.recommend = true },
		},
		{
			states("count_over_time", policy+", reason", missed),
			func(t *totals, labels model.Metric, v float64) {
				if t.reasons == nil {
					t.reasons = map[string]float64{}
				}
				t.reasons[string(labels["reason"])] = v * sampled.Seconds()
			},
		},
	}
}

// readSteps reads the steps between two times.
func (c OutcomeConfig) readSteps(ctx context.Context, q querier) (map[policyStep]*totals, error) {
	found := map[policyStep]*totals{}
	for _, query := range outcomeQueries(c.Namespace, q.step) {
		matrix, err := q.part(ctx, query.expression, v1.Range{Start: q.from.Add(q.step), End: q.to, Step: q.step})
		if err != nil {
			return nil, fmt.Errorf("querying %s: %w", query.expression, err)
		}
		for _, series := range matrix {
			key := policyStep{namespace: string(series.Metric["namespace"]), name: string(series.Metric["policy"])}
			for _, pair := range series.Values {
				value := float64(pair.Value)
				if !(value >= 0 && value <= mostSum) { // so that NaN is left out too
					continue
				}
				key.end = int64(pair.Timestamp)
				if found[key] == nil {
					found[key] = &totals{}
				}
				query.set(found[key], series.Metric, value)
			}
		}
	}
	return found, nil
}

// mostSum is above that of any step.
const mostSum = maxReplicas * 3600

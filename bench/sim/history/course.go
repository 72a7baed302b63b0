// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// Step is what all policies did in a step. Nil is unknown of all of them.
type Step struct {
	Start time.Time
	// Scaled are the policies that scaled and have known replicas. Replicas ran on average, and Peak would have run at
	// each day's largest number: sums of those policies.
	Scaled, Replicas, Peak *float64
	// WithLoad are the policies with a known load. Load is their sum, on average, and Backlog the largest sum of theirs.
	WithLoad, Load, Backlog *float64
}

// add adds a policy that scaled.
func (s *Step) add(replicas, peak float64) {
	if s.Scaled == nil {
		s.Scaled, s.Replicas, s.Peak = new(0.0), new(0.0), new(0.0)
	}
	*s.Scaled, *s.Replicas, *s.Peak = *s.Scaled+1, *s.Replicas+replicas, *s.Peak+peak
}

// course has steps by their last moment, in Unix milliseconds.
type course map[int64]*Step

func (c course) at(end int64) *Step {
	if c[end] == nil {
		c[end] = &Step{}
	}
	return c[end]
}

// between has each step between two times.
func (c course) between(from, to time.Time, step time.Duration) (steps []Step) {
	for start := from; start.Before(to); start = start.Add(step) {
		one := *c.at(start.Add(step).UnixMilli())
		one.Start = start
		steps = append(steps, one)
	}
	return steps
}

// outcomes by namespace and name, with the course of all, in so many days.
type outcomes struct {
	policies map[[2]string]PolicyOutcome
	course   course
	days     int
}

// addDay adds the steps of a day.
func (o outcomes) addDay(number int, steps map[policyStep]*totals, seconds float64) {
	// dayOf is a policy in one of two states.
	type dayOf struct {
		policy    [2]string
		recommend bool
	}
	// ran are the replicas of a step in which they are known.
	type ran struct {
		of       dayOf
		end      int64
		replicas float64
	}
	days, peaks := map[dayOf]Outcome{}, map[dayOf]float64{}
	var scaled []ran
	for _, key := range slices.SortedFunc(maps.Keys(steps), policyStep.compare) {
		t := steps[key]
		one := dayOf{[2]string{key.namespace, key.name}, t.recommend}
		p, seen := o.policies[one.policy]
		if !seen {
			p = PolicyOutcome{
				Namespace: key.namespace, Name: key.name, LateReasons: map[string]float64{}, Days: make([]Outcome, o.days),
			}
		}
		if !t.recommend {
			for reason, late := range t.reasons {
				p.LateReasons[reason] += min(seconds, late)
			}
		}
		o.policies[one.policy] = p
		// The two are known at different moments: together they may exceed the step by one.
		late := min(seconds, t.late)
		known := min(seconds, late+t.met)
		running, replicas := t.replicaTime(seconds)
		days[one] = days[one].Plus(Outcome{
			KnownSeconds: known, LateSeconds: late, WholeSeconds: min(known, running),
			RunningSeconds: running, ReplicaSeconds: replicas,
		})
		peaks[one] = max(peaks[one], t.peak)
		if running > 0 && !t.recommend {
			scaled = append(scaled, ran{one, key.end, replicas / running})
		}
	}
	for one, sum := range days {
		sum.PeakSeconds = peaks[one] * sum.RunningSeconds
		p := o.policies[one.policy]
		if one.recommend {
			p.Recommend = p.Recommend.Plus(sum)
		} else {
			p.Scaled, p.Days[number] = p.Scaled.Plus(sum), sum
		}
		o.policies[one.policy] = p
	}
	for _, s := range scaled {
		o.course.at(s.end).add(s.replicas, peaks[s.of])
	}
}

// readLoad reads sums of all policies: their number does not change the size of the responses.
func (c OutcomeConfig) readLoad(ctx context.Context, q querier, to course) error {
	over, each := model.Duration(q.step).String(), model.Duration(sampled).String()
	load, backlog := policySelector(c.Namespace, "publish_rate", ""), policySelector(c.Namespace, "ready_messages", "")
	q.from = q.from.Add(q.step)
	for _, query := range []struct {
		expression string
		set        func(*Step, *float64)
	}{
		{
			"sum(avg by (namespace, policy) (avg_over_time(" + load + "[" + over + "])))",
			func(s *Step, value *float64) { s.Load = value },
		},
		{
			"count(count by (namespace, policy) (count_over_time(" + load + "[" + over + "])))",
			func(s *Step, value *float64) { s.WithLoad = value },
		},
		{
			"max_over_time(sum(max by (namespace, policy) (" + backlog + "))[" + over + ":" + each + "])",
			func(s *Step, value *float64) { s.Backlog = value },
		},
	} {
		found, err := q.query(ctx, query.expression)
		if err != nil {
			return err
		}
		for end, value := range found {
			query.set(to.at(end), &value)
		}
	}
	return nil
}

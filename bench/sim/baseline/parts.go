// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Part is a part of the algorithm that can be left out, to measure its value. The policy does not know: what the part
// reads is hidden, what it learned is forgotten, or its result is replaced.
type Part struct {
	Name string
	// hide takes away what the part reads or has learned.
	hide func(*policy.Input, *policy.State)
	// replace returns the replicas without the part.
	replace func(policy.Decision) int32
}

// LastPercent is the part that a policy with an objectivePercent of 99 leaves out.
const LastPercent = "last-percent"

// Parts are those that can be left out.
func Parts() []Part {
	return []Part{
		{Name: "busy-time", hide: func(in *policy.Input, _ *policy.State) {
			in.Reading.Instances.Busy = backlog.Unknown(backlog.ErrNotRequested)
			in.Reading.Instances.ServiceTime = backlog.Unknown(backlog.ErrNotRequested)
		}},
		{Name: "headroom", hide: arrivals(func(a *policy.Arrivals) { a.Rise = 0 })},
		{Name: LastPercent, hide: func(in *policy.Input, _ *policy.State) { in.Spec.ObjectivePercent = new(int32(99)) }},
		{Name: "surge", hide: arrivals(func(a *policy.Arrivals) { a.Surge = policy.Surge{} })},
		{Name: "lazy-up", replace: func(d policy.Decision) int32 {
			if d.Hold != nil && d.Hold.Reason == policy.HoldWithinObjective {
				return max(d.Replicas, formula(d.Terms))
			}
			return d.Replicas
		}},
		{Name: "price", hide: func(_ *policy.Input, s *policy.State) { s.Recommendations = nil }},
		{Name: "pulses", hide: func(in *policy.Input, _ *policy.State) {
			in.Spec.Forecast = &v1alpha1.Forecast{Mode: v1alpha1.ForecastOff}
		}},
		{Name: "upstream", hide: func(in *policy.Input, _ *policy.State) { in.Upstream = nil }},
		{Name: "plateau", hide: func(_ *policy.Input, s *policy.State) { s.Plateau = policy.Plateau{} }},
		{Name: "floor", hide: func(_ *policy.Input, s *policy.State) { s.Floor = policy.Floor{} }},
		{Name: "start", hide: func(_ *policy.Input, s *policy.State) { s.Start.Count = 0 }},
		{Name: "restarts", hide: func(in *policy.Input, s *policy.State) { in.Restarts, s.Start.Restarts = false, 0 }},
		{Name: "failover", hide: as(backlog.Failover)},
		{Name: "key-shared", hide: as(backlog.KeyShared)},
		{Name: "exceptions", hide: func(in *policy.Input, _ *policy.State) {
			in.Reading.Instances.UserExceptionRate = backlog.Unknown(backlog.ErrNotRequested)
		}},
		{Name: "pods", hide: func(in *policy.Input, _ *policy.State) { in.Pods = nil }},
	}
}

// formula is the result of the terms of a decision.
func formula(terms []policy.Term) int32 {
	value := map[string]float64{}
	for _, t := range terms {
		value[t.Name] = t.Value
	}
	arriving, drain := value["planned"], value["planned"]+value["backlog"]/value["drain"]
	return int32(math.Ceil(max(arriving/value["utilization"], drain) / value["capacity"]))
}

// arrivals changes the learned arrivals.
func arrivals(change func(*policy.Arrivals)) func(*policy.Input, *policy.State) {
	return func(_ *policy.Input, s *policy.State) {
		if s.Arrivals != nil {
			changed := *s.Arrivals
			change(&changed)
			s.Arrivals = &changed
		}
	}
}

// as shows a type of subscription as Shared.
func as(hidden backlog.SubscriptionType) func(*policy.Input, *policy.State) {
	return func(in *policy.Input, _ *policy.State) {
		if in.Reading.Type == hidden {
			in.Reading.Type, in.Partitions = backlog.Shared, nil
		}
	}
}

// PartNames are the names that ParsePart knows.
func PartNames() []string {
	var names []string
	for _, p := range Parts() {
		names = append(names, p.Name)
	}
	return names
}

// ParsePart returns the part of a name.
func ParsePart(name string) (Part, error) {
	all := Parts()
	if i := slices.IndexFunc(all, func(p Part) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Part{}, fmt.Errorf("%q is no part of the algorithm: use one of %s", name, strings.Join(PartNames(), ", "))
}

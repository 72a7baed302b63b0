// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// parts are those that can be left out.
func parts() []baseline.Part {
	return []baseline.Part{
		{Name: "busy-time", Hide: func(in *policy.Input, _ *policy.State) {
			in.Reading.Instances.Busy = backlog.Unknown(backlog.ErrNotRequested)
			in.Reading.Instances.ServiceTime = backlog.Unknown(backlog.ErrNotRequested)
		}},
		{Name: "headroom", Hide: arrivals(func(a *policy.Arrivals) { a.Rise = 0 })},
		{Name: "last-percent", Hide: func(in *policy.Input, _ *policy.State) {
			in.Spec.ObjectivePercent = new(int32(99)) // the last percent of messages may be late
		}},
		{Name: "surge", Hide: arrivals(func(a *policy.Arrivals) { a.Surge = policy.Surge{} })},
		{Name: "lazy-up", Replace: func(d policy.Decision) int32 {
			if d.Hold != nil && d.Hold.Reason == policy.HoldWithinObjective {
				return max(d.Replicas, formula(d.Terms))
			}
			return d.Replicas
		}},
		{Name: "price", Hide: func(_ *policy.Input, s *policy.State) { s.Recommendations = nil }},
		{Name: "pulses", Hide: func(in *policy.Input, _ *policy.State) {
			in.Spec.Forecast = &v1alpha1.Forecast{Mode: v1alpha1.ForecastOff}
		}},
		{Name: "upstream", Hide: func(in *policy.Input, _ *policy.State) { in.Upstream = nil }},
		{Name: "plateau", Hide: func(_ *policy.Input, s *policy.State) { s.Plateau = policy.Plateau{} }},
		{Name: "floor", Hide: func(_ *policy.Input, s *policy.State) { s.Floor = policy.Floor{} }},
		{Name: "start", Hide: func(_ *policy.Input, s *policy.State) { s.Start.Count = 0 }},
		{Name: "restarts", Hide: func(in *policy.Input, s *policy.State) { in.Restarts, s.Start.Restarts = false, 0 }},
		{Name: "failover", Hide: as(backlog.Failover)},
		{Name: "key-shared", Hide: as(backlog.KeyShared)},
		{Name: "exceptions", Hide: func(in *policy.Input, _ *policy.State) {
			in.Reading.Instances.UserExceptionRate = backlog.Unknown(backlog.ErrNotRequested)
		}},
		{Name: "pods", Hide: func(in *policy.Input, _ *policy.State) { in.Pods = nil }},
	}
}

// formula is the result of the terms of a decision.
func formula(t policy.Terms) int32 {
	return int32(math.Ceil(max(t.Arriving/t.Utilization, t.Arriving+t.Backlog/t.Drain) / t.Capacity))
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

// partNames are the names that parsePart knows.
func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.Name)
	}
	return names
}

// parsePart returns the part of a name.
func parsePart(name string) (baseline.Part, error) {
	all := parts()
	if i := slices.IndexFunc(all, func(p baseline.Part) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	return baseline.Part{}, fmt.Errorf("%q is no part of the algorithm: use one of %s", name,
		strings.Join(partNames(), ", "))
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
)

// Config configures New. Period and Outcomes are required.
type Config struct {
	From, To time.Time
	history.Outcomes
	// Group is the name of a policy's group; nil for a row for each policy. GroupedBy says what the names are.
	Group     func(history.PolicyOutcome) string
	GroupedBy string
	// CostPerReplicaHour is nil without a cost.
	CostPerReplicaHour *float64
}

// Report is what policies did. Null is unknown.
type Report struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// GroupedBy is empty for a row for each policy.
	GroupedBy string `json:"groupedBy,omitempty"`
	Total     Row    `json:"total"`
	// Rows begin with the most late time.
	Rows []Row `json:"items"`

	course []history.Step
}

// Row is a policy, as namespace/name, or a group of them.
type Row struct {
	Name     string `json:"name"`
	Policies int    `json:"policies"`
	// ObjectiveMetPercent of the time in which it is known whether messages met the objective.
	ObjectiveMetPercent *float64 `json:"objectiveMetPercent"`
	LateMinutes         *float64 `json:"lateMinutes"`
	ReplicaHours        *float64 `json:"replicaHours"`
	// SavedReplicaHours and SavedPercent compare with each day's largest number of replicas, all the time.
	SavedReplicaHours *float64 `json:"savedReplicaHours"`
	SavedPercent      *float64 `json:"savedPercent"`
	// SavedSinceRecommend compares with the mean replicas in mode Recommend or Paused.
	SavedSinceRecommend *float64 `json:"savedReplicaHoursSinceRecommend"`
	Cost                *float64 `json:"cost"`
	SavedCost           *float64 `json:"savedCost"`
	// NoDataHours in which the objective or the replicas are unknown, summed over the policies.
	NoDataHours float64 `json:"noDataHours"`
	// Recommend is the time in mode Recommend or Paused, which does not count above; null without any.
	Recommend *Recommend `json:"recommend"`
	// LateReasons are those of condition ObjectiveMet, the longest first.
	LateReasons []Reason `json:"lateReasons"`

	days []history.Outcome
}

// Recommend is what happened in mode Recommend or Paused, when something else scaled.
type Recommend struct {
	Hours               float64  `json:"hours"`
	ObjectiveMetPercent *float64 `json:"objectiveMetPercent"`
	MeanReplicas        float64  `json:"meanReplicas"`
}

// Reason is why messages were late, and for how long.
type Reason struct {
	Reason  string  `json:"reason"`
	Minutes float64 `json:"minutes"`
}

const (
	minute, hour = 60, 3600
	// leastRecommend is a day, so that its nights count as well.
	leastRecommend = 24 * hour
)

// group is what a row is made of.
type group struct {
	policies          int
	scaled, recommend history.Outcome
	reasons           map[string]float64
	// noData are seconds, and since the replica-seconds that were saved since mode Recommend, if any policy shows it.
	noData float64
	since  *float64
	days   []history.Outcome
}

func (g *group) add(p history.PolicyOutcome, seconds float64) {
	g.policies++
	g.scaled, g.recommend = g.scaled.Plus(p.Scaled), g.recommend.Plus(p.Recommend)
	if g.reasons == nil {
		g.reasons = map[string]float64{}
	}
	for reason, late := range p.LateReasons {
		g.reasons[reason] += late
	}
	for i, one := range p.Days {
		if i == len(g.days) {
			g.days = append(g.days, history.Outcome{})
		}
		g.days[i] = g.days[i].Plus(one)
	}
	g.noData += max(0, seconds-p.Scaled.Plus(p.Recommend).WholeSeconds)
	if s, r := p.Scaled, p.Recommend; s.RunningSeconds >= leastRecommend && r.RunningSeconds >= leastRecommend {
		saved := r.ReplicaSeconds/r.RunningSeconds*s.RunningSeconds - s.ReplicaSeconds
		if g.since == nil {
			g.since = new(float64)
		}
		*g.since += saved
	}
}

// New is the report about policies.
func New(c Config) Report {
	var total group
	groups := map[string]*group{}
	seconds := c.To.Sub(c.From).Seconds()
	for _, p := range c.Policies {
		name := p.Namespace + "/" + p.Name
		if c.Group != nil {
			name = c.Group(p)
		}
		if groups[name] == nil {
			groups[name] = &group{}
		}
		groups[name].add(p, seconds)
		total.add(p, seconds)
	}
	r := Report{
		From: c.From, To: c.To, GroupedBy: c.GroupedBy, Total: total.row("total", c.CostPerReplicaHour), course: c.Course,
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		r.Rows = append(r.Rows, groups[name].row(name, c.CostPerReplicaHour))
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int { return cmp.Compare(b.late(), a.late()) })
	return r
}

// late sorts unknown last.
func (r Row) late() float64 {
	if r.LateMinutes == nil {
		return -1
	}
	return *r.LateMinutes
}

func (g *group) row(name string, price *float64) Row {
	s := g.scaled
	row := Row{
		Name: name, Policies: g.policies, NoDataHours: rounded(g.noData / hour), LateReasons: []Reason{}, days: g.days,
	}
	if s.KnownSeconds > 0 {
		row.LateMinutes = new(rounded(s.LateSeconds / minute))
		row.ObjectiveMetPercent = met(s)
	}
	if s.RunningSeconds > 0 {
		row.ReplicaHours = new(rounded(s.ReplicaSeconds / hour))
		row.SavedReplicaHours = new(rounded((s.PeakSeconds - s.ReplicaSeconds) / hour))
		if s.PeakSeconds > 0 {
			row.SavedPercent = new(rounded(100 * (1 - s.ReplicaSeconds/s.PeakSeconds)))
		}
		if price != nil {
			row.Cost = new(rounded(s.ReplicaSeconds / hour * *price))
			row.SavedCost = new(rounded((s.PeakSeconds - s.ReplicaSeconds) / hour * *price))
		}
	}
	if g.since != nil {
		row.SavedSinceRecommend = new(rounded(*g.since / hour))
	}
	if r := g.recommend; r.RunningSeconds > 0 {
		row.Recommend = &Recommend{
			Hours: rounded(r.RunningSeconds / hour), ObjectiveMetPercent: met(r),
			MeanReplicas: rounded(r.ReplicaSeconds / r.RunningSeconds),
		}
	}
	for reason, late := range g.reasons {
		row.LateReasons = append(row.LateReasons, Reason{reason, rounded(late / minute)})
	}
	slices.SortFunc(row.LateReasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Minutes, a.Minutes), cmp.Compare(a.Reason, b.Reason))
	})
	return row
}

// met is the share of the known time in percent; nil if none is known.
func met(o history.Outcome) *float64 {
	if o.KnownSeconds == 0 {
		return nil
	}
	return new(output.MetPercent(o.LateSeconds / o.KnownSeconds))
}

// rounded has two decimals: what is between two samples is not known better.
func rounded(value float64) float64 { return math.Round(100*value)/100 + 0 } // + 0 makes -0 a 0

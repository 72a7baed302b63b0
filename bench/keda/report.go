// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is keda.json. A null was not measured or did not come about.
type report struct {
	KEDA       string    `json:"keda"`
	Pulsar     string    `json:"pulsar,omitempty"`
	Kubernetes string    `json:"kubernetes"`
	CPUs       int       `json:"cpus"`
	Begun      time.Time `json:"begun"`
	Settings   settings  `json:"settings"`
	// LoadAverage of the machine over a minute, by part, at its begin and its end.
	LoadAverage map[string][]float64  `json:"load_average"`
	Contenders  map[string]*contender `json:"contenders"`
}

// settings are the same for all contenders.
type settings struct {
	Rate                   float64 `json:"rate_per_second"`
	Capacity               float64 `json:"capacity_per_replica"`
	EnoughReplicas         int     `json:"enough_replicas"`
	MaxReplicas            int     `json:"max_replicas"`
	ObjectiveSeconds       float64 `json:"objective_seconds"`
	FirstStepSeconds       float64 `json:"first_step_seconds"`
	SecondStepSeconds      float64 `json:"second_step_seconds"`
	StartDelaySeconds      float64 `json:"start_delay_seconds"`
	PollingIntervalSeconds float64 `json:"polling_interval_seconds"`
	CooldownSeconds        float64 `json:"cooldown_seconds"`
	HPASyncSeconds         float64 `json:"hpa_sync_seconds"`
	OutageSeconds          float64 `json:"outage_seconds"`
}

func newSettings(o options) settings {
	const hpaSync = 15 // the default of kube-controller-manager and of package cluster
	return settings{
		Rate: o.rate, Capacity: o.capacity(), EnoughReplicas: o.enough(), MaxReplicas: mostReplicas,
		ObjectiveSeconds: o.objective.Seconds(),
		FirstStepSeconds: o.first.Seconds(), SecondStepSeconds: o.second.Seconds(), StartDelaySeconds: startDelay.Seconds(),
		PollingIntervalSeconds: pollingInterval.Seconds(), CooldownSeconds: o.cooldown.Seconds(), HPASyncSeconds: hpaSync,
		OutageSeconds: o.outage.Seconds(),
	}
}

// contender is what was measured of one.
type contender struct {
	Setting string `json:"setting"`
	// account is of the second step, FirstStep of the first.
	account

	FirstStep *account `json:"first_step,omitempty"`
	fall
	awakening
}

// of returns the contender of a name, which it adds when it is new.
func (r *report) of(name string, o options) *contender {
	if r.Contenders[name] == nil {
		r.Contenders[name] = &contender{Setting: setting(name, o)}
	}
	return r.Contenders[name]
}

func (r *report) noteLoad(part string) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if load, err := strconv.ParseFloat(strings.Fields(string(text) + " unknown")[0], 64); err == nil {
			r.LoadAverage[part] = append(r.LoadAverage[part], load)
		}
	}
}

func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("making the directory of the results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// section of the table: figures of every contender under a heading.
type section struct {
	title string
	rows  []row
}

type row struct {
	title string
	cell  func(c *contender) string
}

func sections() []section {
	return []section{
		{"second step, from zero:", []row{
			{"until the first replica, s", func(c *contender) string { return number(c.FirstReplicaSeconds, 1) }},
			{"  that consumes, s", func(c *contender) string { return number(c.FirstConsumingSeconds, 1) }},
			{"until enough replicas, s", func(c *contender) string { return number(c.EnoughReplicasSeconds, 1) }},
			{"  that consume, s", func(c *contender) string { return number(c.EnoughConsumingSeconds, 1) }},
			{"late messages, %", func(c *contender) string { return number(c.LatePct, 2) }},
			{"replica-seconds", func(c *contender) string { return number(c.ReplicaSeconds, 0) }},
			{"changes of replicas", func(c *contender) string { return whole(c.ReplicaChanges) }},
			{"most replicas", func(c *contender) string { return whole(c.MostReplicas) }},
			{"requests at the broker", func(c *contender) string { return whole(c.BrokerRequests) }},
			{"bytes from the broker", func(c *contender) string { return whole(c.BrokerBytes) }},
		}},
		{"first step, nothing learned:", []row{
			{"until the first replica, s", first(func(a *account) string { return number(a.FirstReplicaSeconds, 1) })},
			{"until enough replicas, s", first(func(a *account) string { return number(a.EnoughReplicasSeconds, 1) })},
			{"late messages, %", first(func(a *account) string { return number(a.LatePct, 2) })},
			{"replica-seconds", first(func(a *account) string { return number(a.ReplicaSeconds, 0) })},
			{"changes of replicas", first(func(a *account) string { return whole(a.ReplicaChanges) })},
		}},
		{"outage of the admin service under backlog:", []row{
			{"least replicas of any target before", func(c *contender) string { return whole(c.OutageHadReplicas) }},
			{"least replicas of any target during it", func(c *contender) string { return whole(c.OutageMinReplicas) }},
			{"targets that fell to zero", func(c *contender) string { return of(c.OutageFell, c.OutageTargets) }},
			{"the first of them after, s", func(c *contender) string { return number(c.OutageFirstFallSeconds, 0) }},
		}},
		{"work for all at once:", []row{
			{"woke", func(c *contender) string { return of(c.BurstWoke, c.BurstTargets) }},
			{"until a replica p50, s", func(c *contender) string { return number(c.BurstP50Seconds, 1) }},
			{"until a replica p99, s", func(c *contender) string { return number(c.BurstP99Seconds, 1) }},
			{"at once more than one", func(c *contender) string { return whole(c.BurstRightSized) }},
			{"until all had autoscalers before, s", func(c *contender) string { return number(c.BurstSetUpSeconds, 0) }},
		}},
	}
}

func first(cell func(*account) string) func(*contender) string {
	return func(c *contender) string {
		if c.FirstStep == nil {
			return none
		}
		return cell(c.FirstStep)
	}
}

func (r *report) table(out io.Writer) error {
	s := r.Settings
	say(out, "KEDA %s, Pulsar %s, Kubernetes %s, everything on %d CPUs, load average by part %v\n", r.KEDA, r.Pulsar,
		r.Kubernetes, r.CPUs, r.LoadAverage)
	say(out, "%g messages/s at %g/s a replica, objective %g s; pollingInterval %g s, cooldownPeriod %g s, HPA sync %g s\n\n",
		s.Rate, s.Capacity, s.ObjectiveSeconds, s.PollingIntervalSeconds, s.CooldownSeconds, s.HPASyncSeconds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var names []string
	for _, name := range all() {
		if r.Contenders[name] != nil {
			names = append(names, name)
		}
	}
	say(table, "\t%s\n", strings.Join(names, "\t"))
	for _, one := range sections() {
		r.section(table, one, names)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, name := range names {
		say(out, "%s: %s\n", name, r.Contenders[name].Setting)
	}
	return nil
}

// section writes one, unless nothing of it was measured.
func (r *report) section(table io.Writer, s section, names []string) {
	lines, measured := "", false
	for _, line := range s.rows {
		lines += "  " + line.title
		for _, name := range names {
			cell := line.cell(r.Contenders[name])
			lines += "\t" + cell
			measured = measured || cell != none
		}
		lines += "\n"
	}
	if measured { // the heading has empty cells, so that the columns go on below it
		say(table, "%s%s\n%s", s.title, strings.Repeat("\t", len(names)), lines)
	}
}

// none stands for what was not measured or did not come about.
const none = "-"

func number(value *float64, digits int) string {
	if value == nil {
		return none
	}
	return strconv.FormatFloat(*value, 'f', digits, 64)
}

func whole[T int | int64](value *T) string {
	if value == nil {
		return none
	}
	return fmt.Sprint(*value)
}

func of(some, all *int) string {
	if some == nil || all == nil {
		return none
	}
	return fmt.Sprintf("%d of %d", *some, *all)
}

// say writes for a person; a reader that has gone is no reason to leave processes behind. A tabwriter keeps its error
// for Flush.
func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

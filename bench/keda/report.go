// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
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
	MaxReplicas            int     `json:"max_replicas"`
	PollingIntervalSeconds float64 `json:"polling_interval_seconds"`
	CooldownSeconds        float64 `json:"cooldown_seconds"`
	HPASyncSeconds         float64 `json:"hpa_sync_seconds"`
	OutageSeconds          float64 `json:"outage_seconds"`
}

func newSettings(o options) settings {
	const hpaSync = 15 // the default of kube-controller-manager and of package cluster
	return settings{
		MaxReplicas: mostReplicas, PollingIntervalSeconds: pollingInterval.Seconds(), CooldownSeconds: o.cooldown.Seconds(),
		HPASyncSeconds: hpaSync, OutageSeconds: o.outage.Seconds(),
	}
}

// contender is what was measured of one.
type contender struct {
	Setting string `json:"setting"`
	fall
	awakening
}

// of returns the contender of a name, which it adds when it is new.
func (r *report) of(name string) *contender {
	if r.Contenders[name] == nil {
		r.Contenders[name] = &contender{Setting: setting(name)}
	}
	return r.Contenders[name]
}

func (r *report) noteLoad(part string) {
	if load, err := testbed.LoadAverage(); err == nil {
		r.LoadAverage[part] = append(r.LoadAverage[part], load)
	}
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
		{"outage of the admin service under backlog:", []row{
			{"least replicas of any target before", func(c *contender) string { return output.Whole(c.OutageHadReplicas) }},
			{"least replicas of any target during it", func(c *contender) string { return output.Whole(c.OutageMinReplicas) }},
			{"targets that fell to zero", func(c *contender) string { return of(c.OutageFell, c.OutageTargets) }},
			{"the first of them after, s", func(c *contender) string { return output.Number(c.OutageFirstFallSeconds, 0) }},
		}},
		{"work for all at once:", []row{
			{"woke", func(c *contender) string { return of(c.BurstWoke, c.BurstTargets) }},
			{"until a replica p50, s", func(c *contender) string { return output.Number(c.BurstP50Seconds, 1) }},
			{"until a replica p99, s", func(c *contender) string { return output.Number(c.BurstP99Seconds, 1) }},
			{"at once more than one", func(c *contender) string { return output.Whole(c.BurstRightSized) }},
			{"until all had autoscalers before, s", func(c *contender) string { return output.Number(c.BurstSetUpSeconds, 0) }},
		}},
	}
}

func (r *report) table(out io.Writer) error {
	s := r.Settings
	output.Printf(out, "KEDA %s, Pulsar %s, Kubernetes %s, everything on %d CPUs, load average by part %v\n",
		r.KEDA, r.Pulsar, r.Kubernetes, r.CPUs, r.LoadAverage)
	output.Printf(out, "pollingInterval %g s, cooldownPeriod %g s, HPA sync %g s\n\n",
		s.PollingIntervalSeconds, s.CooldownSeconds, s.HPASyncSeconds)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var names []string
	for _, name := range all() {
		if r.Contenders[name] != nil {
			names = append(names, name)
		}
	}
	output.Printf(table, "\t%s\n", strings.Join(names, "\t"))
	for _, one := range sections() {
		r.section(table, one, names)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	for _, name := range names {
		output.Printf(out, "%s: %s\n", name, r.Contenders[name].Setting)
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
			measured = measured || cell != output.Unknown
		}
		lines += "\n"
	}
	if measured { // the heading has empty cells, so that the columns go on below it
		output.Printf(table, "%s%s\n%s", s.title, strings.Repeat("\t", len(names)), lines)
	}
}

func of(some, all *int) string {
	if some == nil || all == nil {
		return output.Unknown
	}
	return fmt.Sprintf("%d of %d", *some, *all)
}

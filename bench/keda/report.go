// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
)

// report is keda.json. Null was not measured or did not happen.
type report struct {
	KEDA       string    `json:"keda"`
	Pulsar     string    `json:"pulsar,omitempty"`
	Kubernetes string    `json:"kubernetes"`
	CPUs       int       `json:"cpus"`
	Begun      time.Time `json:"begun"`
	Settings   settings  `json:"settings"`
	// LoadAverage is the machine's over a minute, by part, at its start and end.
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

// contender is the measurement of one contender.
type contender struct {
	Setting string `json:"setting"`
	fall
	awakening
}

// of returns the contender of a name, and adds a missing one.
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

// row is a figure of every contender.
type row struct {
	title string
	cell  func(c *contender) string
}

func rows() []row {
	return []row{
		{"outage: fewest replicas before", func(c *contender) string { return output.Whole(c.OutageHadReplicas) }},
		{"fewest replicas during the outage", func(c *contender) string { return output.Whole(c.OutageMinReplicas) }},
		{"targets scaled to zero", func(c *contender) string { return of(c.OutageFell, c.OutageTargets) }},
		{"first at zero after, s", func(c *contender) string { return output.Number(c.OutageFirstFallSeconds, 0) }},
		{"burst: targets woken", func(c *contender) string { return of(c.BurstWoke, c.BurstTargets) }},
		{"first replica after p50, s", func(c *contender) string { return output.Number(c.BurstP50Seconds, 1) }},
		{"first replica after p99, s", func(c *contender) string { return output.Number(c.BurstP99Seconds, 1) }},
		{"woke to more than one replica", func(c *contender) string { return output.Whole(c.BurstRightSized) }},
		{"all autoscalers created after, s", func(c *contender) string { return output.Number(c.BurstSetUpSeconds, 0) }},
	}
}

func (r *report) table(out io.Writer) error {
	s := r.Settings
	title := fmt.Sprintf("KEDA %s, Pulsar %s, Kubernetes %s, everything on %d CPUs, load average by part %v\n"+
		"pollingInterval %g s, cooldownPeriod %g s, HPA sync %g s\n", r.KEDA, cmp.Or(r.Pulsar, output.Unknown), r.Kubernetes,
		r.CPUs, r.LoadAverage, s.PollingIntervalSeconds, s.CooldownSeconds, s.HPASyncSeconds)
	head, settings := []string{""}, ""
	for _, name := range all() {
		if one := r.Contenders[name]; one != nil {
			head, settings = append(head, name), settings+name+": "+one.Setting+"\n"
		}
	}
	cells := [][]string{head}
	for _, line := range rows() {
		next := []string{line.title}
		for _, name := range head[1:] {
			next = append(next, line.cell(r.Contenders[name]))
		}
		cells = append(cells, next)
	}
	if err := output.Table(out, title, cells); err != nil {
		return err
	}
	output.Printf(out, "%s", settings)
	return nil
}

func of(some, all *int) string {
	if some == nil || all == nil {
		return output.Unknown
	}
	return fmt.Sprintf("%d of %d", *some, *all)
}

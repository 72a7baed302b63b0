// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Source has the last record of each policy that this process reconciles.
type Source interface {
	Records() iter.Seq[*Record]
}

// Collector reads the records when it is scraped.
type Collector struct {
	source Source
	now    func() time.Time
	rows   []row
}

type row struct {
	series
	desc *prometheus.Desc
}

const policyPrefix = "pulsar_autoscaler_policy_"

// NewCollector collects the series of a level.
func NewCollector(source Source, level Level, now func() time.Time) (*Collector, error) {
	if source == nil || now == nil {
		return nil, errors.New("metrics: source and clock must be set")
	}
	c := &Collector{source: source, now: now}
	switch level {
	case Off, Essential, Full:
	default:
		return nil, fmt.Errorf("metrics: level is %q, must be %s, %s or %s", level, Essential, Full, Off)
	}
	for _, s := range table() {
		if level == Off || (s.level == Full && level != Full) {
			continue
		}
		desc := prometheus.NewDesc(policyPrefix+s.name, s.help, append([]string{"namespace", "policy"}, s.labels...), nil)
		c.rows = append(c.rows, row{s, desc})
	}
	return c, nil
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, r := range c.rows {
		to <- r.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	if len(c.rows) == 0 {
		return
	}
	now := c.now()
	// The registry sorts each family, which takes most of a scrape unless it is sorted already.
	for _, record := range slices.SortedFunc(c.source.Records(), (*Record).compare) {
		// All series of a record share their labels: 10,000 policies have some 180,000 series.
		labels := []*dto.LabelPair{
			{Name: new("namespace"), Value: &record.namespace}, {Name: new("policy"), Value: &record.name},
		}
		for _, row := range c.rows {
			row.collect(record, labels, now, to)
		}
	}
}

func (r row) collect(record *Record, own []*dto.LabelPair, now time.Time, to chan<- prometheus.Metric) {
	if r.value != nil {
		if value, err := r.value(record, now).Value(); err == nil {
			to <- metric{r.desc, r.counter, own, value}
		}
		return
	}
	for _, s := range r.labelled(record) {
		labels := slices.Clone(own)
		for i, name := range r.labels {
			labels = append(labels, &dto.LabelPair{Name: &name, Value: &s.labels[i]})
		}
		slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
		to <- metric{r.desc, r.counter, labels, s.value}
	}
}

// metric is one sample, with its labels sorted by name.
type metric struct {
	desc    *prometheus.Desc
	counter bool
	labels  []*dto.LabelPair
	value   float64
}

// Desc implements prometheus.Metric.
func (m metric) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric.
func (m metric) Write(to *dto.Metric) error {
	to.Label = m.labels
	if m.counter {
		to.Counter = &dto.Counter{Value: &m.value}
		return nil
	}
	to.Gauge = &dto.Gauge{Value: &m.value}
	return nil
}

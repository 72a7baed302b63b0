// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"iter"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Exporter reads the records when it is scraped. It is not a prometheus.Collector: 10,000 policies have some 200,000
// samples, and a registry copies, checks, sorts and keeps all of them until the scrape ends.
type Exporter struct {
	records func() []*Record
	now     func() time.Time
	// table has the series of the level, by name.
	table []Series
}

// NewExporter exports the series of a level. records returns a new slice with the last record of each policy that this
// process reconciles.
func NewExporter(records func() []*Record, level Level, now func() time.Time) *Exporter {
	shown := slices.DeleteFunc(Table(), func(s Series) bool { return level == Off || (s.Level == Full && level != Full) })
	return &Exporter{records, now, shown}
}

// Families returns a family for each series that has a sample, with the samples of each policy in order.
func (e *Exporter) Families() iter.Seq[*dto.MetricFamily] {
	return func(yield func(*dto.MetricFamily) bool) {
		if len(e.table) == 0 {
			return
		}
		now, records := e.now(), e.records()
		slices.SortFunc(records, (*Record).compare)
		labels := make([][]*dto.LabelPair, len(records))
		for i, record := range records { // all series of a record share its labels
			labels[i] = []*dto.LabelPair{
				{Name: new("namespace"), Value: &record.namespace}, {Name: new("policy"), Value: &record.name},
			}
		}
		for _, s := range e.table {
			family := s.family(len(records))
			for i, record := range records {
				family.Metric = s.appendSamples(family.GetMetric(), record, labels[i], now)
			}
			if len(family.GetMetric()) > 0 && !yield(family) {
				return
			}
		}
	}
}

// family has no sample, and place for some.
func (s Series) family(samples int) *dto.MetricFamily {
	kind := dto.MetricType_GAUGE
	if s.Counter {
		kind = dto.MetricType_COUNTER
	}
	return &dto.MetricFamily{
		Name: &s.Name, Help: &s.Help, Type: &kind, Metric: make([]*dto.Metric, 0, samples),
	}
}

// appendSamples appends the samples of a record, of which own are labels.
func (s Series) appendSamples(all []*dto.Metric, record *Record, own []*dto.LabelPair, now time.Time) []*dto.Metric {
	if s.value != nil {
		if value, err := s.value(record, now).Value(); err == nil {
			all = append(all, s.metric(own, value))
		}
		return all
	}
	for _, one := range s.labelled(record) {
		labels := slices.Clone(own)
		for i, name := range s.Labels {
			labels = append(labels, &dto.LabelPair{Name: &name, Value: &one.labels[i]})
		}
		slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
		all = append(all, s.metric(labels, one.value))
	}
	return all
}

func (s Series) metric(labels []*dto.LabelPair, value float64) *dto.Metric {
	if s.Counter {
		return &dto.Metric{Label: labels, Counter: &dto.Counter{Value: &value}}
	}
	return &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}}
}

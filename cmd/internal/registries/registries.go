// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package registries

import (
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// FirstWins gathers from independent registries. Several libraries register the same families, such as go_* and
// rest_client_*: the first registry wins for equal series, and for families that differ in type. prometheus.Gatherers
// would fail instead.
type FirstWins []prometheus.Gatherer

// Gather returns the families of all registries, sorted by name.
func (registries FirstWins) Gather() ([]*dto.MetricFamily, error) {
	merged := map[string]*dto.MetricFamily{}
	var problems []error
	for _, registry := range registries {
		families, err := registry.Gather()
		if err != nil {
			problems = append(problems, err) // partial results count
		}
		for _, family := range families {
			merged[family.GetName()] = mergeFamily(merged[family.GetName()], family)
		}
	}
	all := make([]*dto.MetricFamily, 0, len(merged))
	for _, family := range merged {
		all = append(all, family)
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, errors.Join(problems...)
}

// mergeFamily adds the series that only the second family has.
func mergeFamily(first, second *dto.MetricFamily) *dto.MetricFamily {
	if first == nil {
		return second
	}
	if first.GetType() != second.GetType() {
		return first
	}
	seen := make(map[string]bool, len(first.GetMetric()))
	for _, series := range first.GetMetric() {
		seen[labelsOf(series)] = true
	}
	merged := &dto.MetricFamily{
		Name: first.Name, Help: first.Help, Type: first.Type, Unit: first.Unit,
		Metric: slices.Clone(first.GetMetric()),
	}
	for _, series := range second.GetMetric() {
		if !seen[labelsOf(series)] {
			merged.Metric = append(merged.Metric, series)
		}
	}
	slices.SortFunc(merged.Metric, func(a, b *dto.Metric) int { return strings.Compare(labelsOf(a), labelsOf(b)) })
	return merged
}

// labelsOf identifies a series within its family; registries sort labels by name.
func labelsOf(series *dto.Metric) string {
	var text strings.Builder
	for _, label := range series.GetLabel() {
		text.WriteString(label.GetName() + "\xff" + label.GetValue() + "\xff")
	}
	return text.String()
}

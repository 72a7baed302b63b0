// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"context"
	"strconv"
)

// Metrics has the samples of each series of /metrics by its complete name, whatever their labels.
type Metrics map[string][]float64

// ReadMetrics reads the text of /metrics.
func ReadMetrics(text []byte) Metrics {
	m := Metrics{}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		end, last := bytes.IndexAny(line, "{ "), bytes.LastIndexByte(line, ' ')
		if end <= 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(string(line[last+1:]), 64); err == nil {
			name := string(line[:end])
			m[name] = append(m[name], value)
		}
	}
	return m
}

// Sum of a series; 0 without a sample.
func (m Metrics) Sum(name string) (total float64) {
	for _, value := range m[name] {
		total += value
	}
	return total
}

// Metrics reads an adapter's own metrics; none after an error.
func (s *Stage) Metrics(ctx context.Context, a *Adapter) (Metrics, error) {
	text, err := s.Ask(ctx, a, "/metrics")
	return ReadMetrics(text), err
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"strconv"
)

// Scrape has the samples of each series of /metrics by its complete name, whatever their labels.
type Scrape map[string][]float64

// NewScrape reads the text of /metrics.
func NewScrape(text []byte) Scrape {
	s := Scrape{}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		end, last := bytes.IndexAny(line, "{ "), bytes.LastIndexByte(line, ' ')
		if end <= 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(string(line[last+1:]), 64); err == nil {
			name := string(line[:end])
			s[name] = append(s[name], value)
		}
	}
	return s
}

// Sum of a series; 0 without a sample.
func (s Scrape) Sum(name string) (total float64) {
	for _, value := range s[name] {
		total += value
	}
	return total
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

type report struct {
	CPUs               int      `json:"cpus"`
	PartitionsPerTopic int      `json:"partitions_per_topic"`
	BusyPercent        int      `json:"busy_percent"`
	IntervalSeconds    float64  `json:"interval_seconds"`
	Results            []result `json:"results"`
}

type result struct {
	Contender       string `json:"contender"`
	TopicPartitions int    `json:"topic_partitions"`
	// Topics equal the number of functions.
	Topics int `json:"topics"`
	// Flags of the adapter that differ from the defaults; absent if none do.
	Flags string `json:"flags_that_differ,omitempty"`
	figures
}

func (r report) writeTable(out io.Writer) error {
	rows := [][]string{{
		"partitions", "contender", "requests/s", "KB/s", "CPU s per 1k functions and minute", "memory MB", "freshness p99 s",
		"unknown", "flags that differ",
	}}
	for _, one := range r.Results {
		const kilo, mega = 1e3, 1e6
		kilobytes, megabytes := one.BytesPerSecond/kilo, float64(one.Memory)/mega
		rows = append(rows, []string{
			strconv.Itoa(one.TopicPartitions), one.Contender, output.Number(&one.RequestsPerSecond, 0),
			output.Number(&kilobytes, 0), output.Number(&one.CPUSeconds, 2), output.Number(&megabytes, 1),
			output.Number(&one.Freshness, 1), strconv.Itoa(one.Unknown), cmp.Or(one.Flags, "none"),
		})
	}
	title := fmt.Sprintf("every %.0f s, %d partitions a topic, %d %% of the topics with a backlog, everything on %d CPUs",
		r.IntervalSeconds, r.PartitionsPerTopic, r.BusyPercent, r.CPUs)
	return output.Table(out, title, rows)
}

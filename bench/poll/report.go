// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
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
	// Topics are as many as functions.
	Topics int `json:"topics"`
	figures
}

func (r report) writeTable(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	// The writer keeps an error for Flush.
	_, _ = fmt.Fprintf(table,
		"every %.0f s, %d partitions a topic, %d %% of the topics with a backlog, everything on %d CPUs\n\n",
		r.IntervalSeconds, r.PartitionsPerTopic, r.BusyPercent, r.CPUs)
	_, _ = fmt.Fprintln(table,
		"partitions\tcontender\trequests/s\tKB/s\tCPU s per 1k functions and minute\tmemory MB\tfreshness p99 s\tunknown\t")
	for _, one := range r.Results {
		const kilo, mega = 1e3, 1e6
		_, _ = fmt.Fprintf(table, "%d\t%s\t%.0f\t%.0f\t%.2f\t%.1f\t%.1f\t%d\t\n", one.TopicPartitions, one.Contender,
			one.RequestsPerSecond,
			one.BytesPerSecond/kilo, one.CPUSeconds, float64(one.Memory)/mega, one.Freshness, one.Unknown)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

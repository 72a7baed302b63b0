// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// report is what is written as JSON and, but for the names, as the table.
type report struct {
	Kubernetes string   `json:"kubernetes"`
	Pulsar     string   `json:"pulsar"`
	CPUs       int      `json:"cpus"`
	Results    []result `json:"results"`
}

// result of one measurement. Times are of good answers; without any they are unknown and null.
type result struct {
	Route  string `json:"route"`
	Metric string `json:"metric"`
	// Protocol and ContentType are those of the answers, such as HTTP/2.0 and application/vnd.kubernetes.protobuf.
	Protocol    string `json:"protocol"`
	ContentType string `json:"contentType"`

	Clients             int      `json:"clients"`
	Requests            int      `json:"requests"`
	Errors              int      `json:"errors"`
	Seconds             float64  `json:"seconds"`
	AnswersPerSecond    float64  `json:"answersPerSecond"`
	P50Milliseconds     *float64 `json:"p50Milliseconds"`
	P99Milliseconds     *float64 `json:"p99Milliseconds"`
	LongestMilliseconds *float64 `json:"longestMilliseconds"`
}

// addOutcome fills in the numbers.
func (r *result) addOutcome(clients int, o outcome) {
	r.Clients, r.Requests, r.Errors = clients, len(o.waits)+o.failed, o.failed
	r.Seconds = o.elapsed.Seconds()
	if r.Seconds > 0 {
		r.AnswersPerSecond = float64(len(o.waits)) / r.Seconds
	}
	sorted := slices.Sorted(slices.Values(o.waits))
	r.P50Milliseconds = quantileMilliseconds(sorted, 0.5)
	r.P99Milliseconds = quantileMilliseconds(sorted, 0.99)
	r.LongestMilliseconds = quantileMilliseconds(sorted, 1)
}

// quantileMilliseconds is the least wait that at least the share q of all waits does not exceed (nearest rank), in
// milliseconds, for q above 0; nil when there are no waits.
func quantileMilliseconds(sorted []time.Duration, q float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	milliseconds := float64(sorted[max(rank, 1)-1]) / float64(time.Millisecond)
	return &milliseconds
}

// errors of all measurements.
func (r report) errors() int {
	sum := 0
	for _, one := range r.Results {
		sum += one.Errors
	}
	return sum
}

func (r report) writeTable(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "GET of a metric on Kubernetes %s and Pulsar %s, everything on %d CPUs\n\n",
		r.Kubernetes, r.Pulsar, r.CPUs); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	// The writer keeps an error for Flush.
	_, _ = fmt.Fprintln(table,
		"route\tmetric\tclients\trequests\terrors\tp50 ms\tp99 ms\tlongest ms\tanswers/s\tprotocol\t")
	for _, one := range r.Results {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%.0f\t%s\t\n", one.Route, one.Metric, one.Clients,
			one.Requests, one.Errors,
			cell(one.P50Milliseconds), cell(
				one.P99Milliseconds), cell(one.LongestMilliseconds), one.AnswersPerSecond, cmp.Or(one.Protocol, unknown))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

const unknown = "unknown"

func cell(milliseconds *float64) string {
	if milliseconds == nil {
		return unknown
	}
	return strconv.FormatFloat(*milliseconds, 'f', 2, 64)
}

func (r report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

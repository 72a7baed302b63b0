// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// report is written as JSON and, except for the names, as the table.
type report struct {
	Kubernetes string   `json:"kubernetes"`
	Pulsar     string   `json:"pulsar"`
	CPUs       int      `json:"cpus"`
	Results    []result `json:"results"`
}

// result of one measurement. Durations are of successful requests; without any they are unknown and null.
type result struct {
	Route  string `json:"route"`
	Metric string `json:"metric"`
	// Protocol and ContentType are those of the responses, such as HTTP/2.0 and application/vnd.kubernetes.protobuf.
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

// addOutcome adds the numbers.
func (r *result) addOutcome(clients int, o outcome) {
	r.Clients, r.Requests, r.Errors = clients, len(o.waits)+o.failed, o.failed
	r.Seconds = o.elapsed.Seconds()
	if r.Seconds > 0 {
		r.AnswersPerSecond = float64(len(o.waits)) / r.Seconds
	}
	sorted := slices.Sorted(slices.Values(o.waits))
	r.P50Milliseconds = milliseconds(sorted, 0.5)
	r.P99Milliseconds = milliseconds(sorted, 0.99)
	r.LongestMilliseconds = milliseconds(sorted, 1)
}

// milliseconds of the quantile q; nil without durations.
func milliseconds(sorted []time.Duration, q float64) *float64 {
	wait, known := output.Quantile(sorted, len(sorted), q)
	if !known {
		return nil
	}
	return new(float64(wait) / float64(time.Millisecond))
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
	rows := [][]string{{
		"route", "metric", "clients", "requests", "errors", "p50 ms", "p99 ms", "longest ms", "answers/s", "protocol",
	}}
	for _, one := range r.Results {
		rows = append(rows, []string{
			one.Route, one.Metric, strconv.Itoa(one.Clients), strconv.Itoa(one.Requests), strconv.Itoa(one.Errors),
			output.Number(one.P50Milliseconds, 2), output.Number(one.P99Milliseconds, 2),
			output.Number(one.LongestMilliseconds, 2), output.Number(&one.AnswersPerSecond, 0),
			cmp.Or(one.Protocol, output.Unknown),
		})
	}
	title := fmt.Sprintf("GET of a metric on Kubernetes %s and Pulsar %s, everything on %d CPUs",
		r.Kubernetes, r.Pulsar, r.CPUs)
	return output.Table(out, title, rows)
}

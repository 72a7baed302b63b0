// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/golden"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMillisecondsOfNoWaitsAreUnknown(t *testing.T) {
	waits := []time.Duration{1500 * time.Microsecond, 2 * time.Millisecond}
	require.Equal(t, 1.5, *milliseconds(waits, 0.5))
	require.Nil(t, milliseconds(nil, 0.5))
}

func sampleReport() report {
	r := report{Kubernetes: "v1.2.3", Pulsar: "4.5.6", CPUs: 2}
	good := result{
		Route: "aggregator", Metric: "pulsar_function_desired_replicas", Protocol: "HTTP/2.0",
		ContentType: "application/json",
	}
	good.addOutcome(16, outcome{
		waits:   []time.Duration{3 * time.Millisecond, 1250 * time.Microsecond, 2 * time.Millisecond, 10 * time.Millisecond},
		elapsed: 8 * time.Millisecond,
	})
	bad := result{Route: "direct", Metric: "pulsar_function_desired_replicas"}
	bad.addOutcome(1, outcome{failed: 3, because: errTest, elapsed: time.Second})
	r.Results = []result{good, bad}
	return r
}

func TestReport(t *testing.T) {
	golden.Written(t, *update, "table.txt", sampleReport().writeTable)
	golden.JSON(t, *update, "report.json", sampleReport())
}

func TestWriteShowsAndKeepsTheNumbersBeforeItFailsForErrors(t *testing.T) {
	var out bytes.Buffer
	b := bench{jsonPath: filepath.Join(t.TempDir(), "metrics.json"), out: &out}
	require.EqualError(t, b.write(sampleReport()), "3 requests were not answered with the metric")
	require.Contains(t, out.String(), "aggregator")
	require.FileExists(t, b.jsonPath)

	clean := sampleReport()
	clean.Results = clean.Results[:1]
	require.NoError(t, b.write(clean))

	b.jsonPath = filepath.Join(b.jsonPath, "below.json")
	require.ErrorContains(t, b.write(clean), "results", "a file is no directory")
}

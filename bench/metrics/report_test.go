// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

func TestQuantileIsTheNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i+1) * time.Millisecond
	}
	tests := map[string]struct {
		sorted []time.Duration
		q      float64
		want   float64
	}{
		"the median of 1 to 100 is 50":                   {hundred, 0.5, 50},
		"p99 of 1 to 100 is 99":                          {hundred, 0.99, 99},
		"the last of 1 to 100 is 100":                    {hundred, 1, 100},
		"p99 of ten is the last":                         {hundred[:10], 0.99, 10},
		"the median of three is the middle":              {hundred[:3], 0.5, 2},
		"of one value each quantile is it":               {hundred[6:7], 0.5, 7},
		"parts of a millisecond are kept":                {[]time.Duration{1500 * time.Microsecond}, 0.99, 1.5},
		"a quantile near zero is the first of the waits": {hundred, 1e-9, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := quantileMilliseconds(tt.sorted, tt.q)
			require.NotNil(t, got)
			require.InDelta(t, tt.want, *got, 1e-9)
		})
	}
	require.Nil(t, quantileMilliseconds(nil, 0.5), "without waits it is unknown")
}

// A dumb twin: the least of the waits that enough waits do not exceed, found by counting.
func TestQuantileCountsLikeItsTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		waits := make([]time.Duration, 1+random.IntN(30))
		for i := range waits {
			waits[i] = time.Duration(random.IntN(20)) * time.Millisecond
		}
		slices.Sort(waits)
		percent := 1 + random.IntN(100)
		want := waits[len(waits)-1]
		for _, candidate := range waits {
			notAbove := 0
			for _, wait := range waits {
				if wait <= candidate {
					notAbove++
				}
			}
			if notAbove*100 >= percent*len(waits) {
				want = candidate
				break
			}
		}
		got := quantileMilliseconds(waits, float64(percent)/100)
		require.NotNil(t, got)
		require.InDelta(t, float64(want.Milliseconds()), *got, 1e-9, "p%d of %v", percent, waits)
	}
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
	tests := map[string]func(io.Writer) error{
		"table.txt":   sampleReport().writeTable,
		"report.json": sampleReport().writeJSON,
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			require.NoError(t, write(&got))
			golden := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o750))
				require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
		})
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errTest }

func TestReportFailsWhenItCannotBeWritten(t *testing.T) {
	require.ErrorIs(t, sampleReport().writeTable(brokenWriter{}), errTest)
	require.ErrorIs(t, sampleReport().writeJSON(brokenWriter{}), errTest)
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

	b.jsonPath = filepath.Join(t.TempDir(), "missing", "metrics.json")
	require.ErrorIs(t, b.write(clean), os.ErrNotExist)
}

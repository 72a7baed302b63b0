// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const twoPackages = `?   	example.com/m/empty	[no test files]
goos: linux
goarch: amd64
pkg: example.com/m/policy
cpu: AMD EPYC 7B13
BenchmarkDecide
BenchmarkDecide-2   	  500000	      2400 ns/op	     320 B/op	       7 allocs/op
BenchmarkDecide-2   	  500000	      2600.5 ns/op	     320 B/op	       7 allocs/op
BenchmarkDecide-2   	  500000	      2300 ns/op	     321 B/op	       7 allocs/op
    decide_test.go:12: Benchmarking goes on
PASS
ok  	example.com/m/policy	4.2s
goos: linux
goarch: amd64
pkg: example.com/m/backlog
cpu: AMD EPYC 7B13
BenchmarkDecide-2   	    100	      10 ns/op	   1e+03 MB/s
BenchmarkDecide-2   	    100	      20 ns/op
Benchmark/a_sub-benchmark/size=10-2   	    1	      -1.5 degrees
PASS
ok  	example.com/m/backlog	1.2s
`

func TestRunSummarizesEachBenchmark(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(strings.NewReader(twoPackages), &out))
	require.JSONEq(t, `{
		"os": "linux", "architecture": "amd64", "cpu": "AMD EPYC 7B13",
		"benchmarks": [
			{"package": "example.com/m/policy", "name": "BenchmarkDecide-2", "samples": 3, "units": {
				"ns/op": {"median": 2400, "min": 2300, "max": 2600.5},
				"B/op": {"median": 320, "min": 320, "max": 321},
				"allocs/op": {"median": 7, "min": 7, "max": 7}
			}},
			{"package": "example.com/m/backlog", "name": "BenchmarkDecide-2", "samples": 2, "units": {
				"ns/op": {"median": 15, "min": 10, "max": 20},
				"MB/s": {"median": 1000, "min": 1000, "max": 1000}
			}},
			{"package": "example.com/m/backlog", "name": "Benchmark/a_sub-benchmark/size=10-2", "samples": 1, "units": {
				"degrees": {"median": -1.5, "min": -1.5, "max": -1.5}
			}}
		]
	}`, out.String())
}

func TestRunRejectsUnusableInput(t *testing.T) {
	const good = "BenchmarkA-2 10 5 ns/op\n"
	tests := map[string]struct {
		in      string
		want    error
		message string
	}{
		"nothing":                       {"", errNoBenchmarks, "no benchmark in the input"},
		"tests without benchmarks":      {"PASS\nok  \tm\t0.1s\n", errNoBenchmarks, "no benchmark in the input"},
		"a package that failed":         {good + "FAIL\tm\t0.1s\n", errFailed, "input:2: a benchmark failed: FAIL"},
		"a package that does not build": {good + "FAIL\tm [build failed]\n", errFailed, "[build failed]"},
		"a benchmark that failed":       {good + "--- FAIL: BenchmarkB-2\n", errFailed, "BenchmarkB-2"},
		"a sub-benchmark that failed":   {good + "    --- FAIL: BenchmarkB/c-2\n", errFailed, "BenchmarkB/c-2"},
		"a line the program wrote into": {
			good + "BenchmarkB-2 start\n", errBadLine,
			"input:2: parsing iteration count",
		},
		"a line of the program's own": {good + "Benchmarking\tgoes on\n", errBadLine, "parsing iteration count"},
		"a line without values":       {"BenchmarkB-2 10\n", errBadLine, "missing measurements"},
		"a value without a unit":      {"BenchmarkB-2 10 5 ns/op 3\n", errBadLine, "missing units"},
		"an invalid value":            {"BenchmarkB-2 10 NaN ns/op\n", errBadLine, "NaN ns/op is no number"},
		"a value that is a word":      {"BenchmarkB-2 10 fast ns/op\n", errBadLine, "parsing measurement"},
		"no iterations":               {"BenchmarkB-2 0 5 ns/op\n", errBadLine, "0 iterations"},
		"a unit twice in a line":      {"BenchmarkB-2 10 5 ns/op 6 ns/op\n", errBadLine, "two values in ns/op"},
		"runs of two machines in one file": {
			"cpu: A\n" + good + "cpu: B\n" + good, errTwoMachines,
			"input:4: the input is of",
		},
		"a line that is longer than any real": {good + strings.Repeat("x", 1<<20), bufio.ErrTooLong, "reading the input"},
		"an input that is longer than any":    {strings.Repeat("\n", maxInputBytes+1), errTooLong, "64 MiB"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(strings.NewReader(tt.in), &out)
			require.ErrorContains(t, err, tt.message)
			require.ErrorIs(t, err, tt.want)
			require.Empty(t, out.String())
		})
	}
}

// Half of the values are not above the median, half are not below it.
func TestMedianSplitsTheSamplesInHalves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		values := make([]float64, 1+random.IntN(9))
		for i := range values {
			values[i] = float64(random.IntN(7)) - 3
		}
		given := slices.Clone(values)
		got := spreadOf(values)
		require.Equal(t, given, values, "the caller's samples stay in their order")
		var below, above int
		for _, v := range values {
			if v < got.Median {
				below++
			}
			if v > got.Median {
				above++
			}
		}
		require.LessOrEqual(t, 2*below, len(values), "%v of %v", got, values)
		require.LessOrEqual(t, 2*above, len(values), "%v of %v", got, values)
		require.Equal(t, spread{Median: got.Median, Min: slices.Min(values), Max: slices.Max(values)}, got)
	}
}

func FuzzRun(f *testing.F) {
	f.Add(twoPackages)
	f.Add("BenchmarkA 1 1.7976931348623157e308 x\nBenchmarkA 1 1.7976931348623157e308 x\n")
	f.Add("BenchmarkA 1 5e-324 x\nBenchmarkA 1 5e-324 x\n")
	f.Add("BenchmarkA 1 -1.7e308 x\nBenchmarkA 1 1.7e308 x\n")
	f.Add("pkg: \xff\nBenchmark\xff 1 1 \xff\n")
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		if err := run(strings.NewReader(in), &out); err != nil {
			require.Empty(t, out.String())
			return
		}
		var d document
		require.NoError(t, json.Unmarshal(out.Bytes(), &d))
		require.NotEmpty(t, d.Benchmarks)
		for _, b := range d.Benchmarks {
			require.Positive(t, b.Samples)
			require.NotEmpty(t, b.Units)
			for unit, s := range b.Units {
				require.LessOrEqual(t, s.Min, s.Median, unit)
				require.LessOrEqual(t, s.Median, s.Max, unit)
			}
		}
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/perf/benchfmt"
)

// Reasons why the output cannot be used.
var (
	errFailed       = errors.New("a benchmark failed")
	errNoBenchmarks = errors.New(`no benchmark in the input: give it the output of "go test -bench"`)
	errBadLine      = errors.New("not a line of a benchmark")
	errTwoMachines  = errors.New("the input is of two machines: give one file at a time")
	errTooLong      = errors.New("the input is longer than 64 MiB")
)

// maxInputBytes exceeds the output of a day of benchmarks, and bounds the memory.
const maxInputBytes = 64 << 20

// machine is common to all runs: the configuration that "go test" prints before each package.
type machine struct{ goos, goarch, cpu string }

// benchmark names a benchmark as "go test" prints it, with the suffix for GOMAXPROCS if there is one.
type benchmark struct{ pkg, name string }

// samples are the values of one benchmark per unit, in the order of the runs.
type samples struct {
	benchmark
	runs   int
	byUnit map[string][]float64
}

// output is the parsed output, with benchmarks in the order of their first lines.
type output struct {
	machine    machine
	benchmarks []*samples
}

// parse reads the output of "go test -bench". Lines that are neither a result nor configuration are skipped.
func parse(in io.Reader) (output, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxInputBytes+1))
	switch {
	case err != nil:
		return output{}, fmt.Errorf("reading the input: %w", err)
	case len(text) > maxInputBytes:
		return output{}, errTooLong
	}
	if err := failure(text); err != nil {
		return output{}, err
	}
	c := collector{byName: map[benchmark]*samples{}}
	reader := benchfmt.NewReader(bytes.NewReader(text), "input")
	for reader.Scan() {
		if err := c.record(reader.Result()); err != nil {
			return output{}, err
		}
	}
	if err := reader.Err(); err != nil {
		return output{}, fmt.Errorf("reading the input: %w", err)
	}
	if len(c.output.benchmarks) == 0 {
		return output{}, errNoBenchmarks
	}
	return c.output, nil
}

// failure finds the lines that "go test" prints for a benchmark or a package that failed or does not build. The
// benchmark format has no failures, so its reader skips them.
func failure(text []byte) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		failed := string(line) == "FAIL" || bytes.HasPrefix(line, []byte("FAIL\t")) ||
			bytes.HasPrefix(bytes.TrimSpace(line), []byte("--- FAIL: "))
		if failed {
			return fmt.Errorf("input:%d: %w: %s", number, errFailed, line)
		}
	}
	return nil
}

// collector groups results by benchmark.
type collector struct {
	output output
	byName map[benchmark]*samples
}

func (c *collector) record(record benchfmt.Record) error {
	switch r := record.(type) {
	case *benchfmt.SyntaxError:
		return fmt.Errorf("%w: %w", errBadLine, r)
	case *benchfmt.Result:
		if err := c.result(r); err != nil {
			file, line := r.Pos()
			return fmt.Errorf("%s:%d: %w", file, line, err)
		}
	}
	return nil // metadata of units changes no number
}

// result copies what it keeps: the reader reuses r.
func (c *collector) result(r *benchfmt.Result) error {
	here := machine{goos: r.GetConfig("goos"), goarch: r.GetConfig("goarch"), cpu: r.GetConfig("cpu")}
	if len(c.output.benchmarks) == 0 {
		c.output.machine = here
	}
	if here != c.output.machine {
		return fmt.Errorf("%w: %q and %q", errTwoMachines, c.output.machine, here)
	}
	if r.Iters < 1 {
		return fmt.Errorf("%w: %d iterations", errBadLine, r.Iters)
	}
	values, err := printed(r.Values)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadLine, err)
	}
	key := benchmark{pkg: r.GetConfig("pkg"), name: "Benchmark" + r.Name.String()}
	s := c.byName[key]
	if s == nil {
		s = &samples{benchmark: key, byUnit: map[string][]float64{}}
		c.byName[key] = s
		c.output.benchmarks = append(c.output.benchmarks, s)
	}
	s.runs++
	for unit, value := range values {
		s.byUnit[unit] = append(s.byUnit[unit], value)
	}
	return nil
}

// printed returns the values by unit as "go test" printed them: the reader converts ns/op to sec/op and MB/s to B/s.
func printed(read []benchfmt.Value) (map[string]float64, error) {
	values := make(map[string]float64, len(read))
	for _, v := range read {
		value, unit := v.Value, v.Unit
		if v.OrigUnit != "" {
			value, unit = v.OrigValue, v.OrigUnit
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("%v %s is no number", value, unit)
		}
		if _, twice := values[unit]; twice {
			return nil, fmt.Errorf("two values in %s", unit)
		}
		values[unit] = value
	}
	return values, nil
}

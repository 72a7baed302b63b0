// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reasons why the output is no basis for numbers.
var (
	errFailed       = errors.New("a benchmark failed")
	errNoBenchmarks = errors.New(`no benchmark in the input: give it the output of "go test -bench"`)
	errBadLine      = errors.New("not a line of a benchmark")
	errTwoMachines  = errors.New("the input is of two machines: give one file at a time")
)

// maxLineBytes is far above the longest line of a benchmark, a few hundred bytes, and bounds what a program's output in
// between can make us hold.
const maxLineBytes = 1 << 20

// machine is what the runs have in common: the header "go test" prints for each package.
type machine struct{ goos, goarch, cpu string }

// benchmark names a benchmark as "go test" prints it, with the suffix for GOMAXPROCS if there is one.
type benchmark struct{ pkg, name string }

// samples are the values of one benchmark per unit, in the order of the runs.
type samples struct {
	benchmark
	runs   int
	byUnit map[string][]float64
}

// output is what was read, benchmarks in the order of their first lines.
type output struct {
	machine    machine
	benchmarks []*samples
}

// parse reads the format of https://go.dev/design/14313-benchmark-format: header lines "key: value" and lines of
// "Benchmark<Name> <iterations> <value> <unit> [<value> <unit>]...". Other lines are what tests print, and are skipped.
func parse(in io.Reader) (output, error) {
	p := parser{byName: map[benchmark]*samples{}}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLineBytes)
	number := 0
	for scanner.Scan() {
		number++
		if err := p.line(scanner.Text()); err != nil {
			return output{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return output{}, fmt.Errorf("reading after line %d: %w", number, err)
	}
	if len(p.output.benchmarks) == 0 {
		return output{}, errNoBenchmarks
	}
	return p.output, nil
}

type parser struct {
	output output
	pkg    string
	byName map[benchmark]*samples
}

func (p *parser) line(line string) error {
	fields := strings.Fields(line)
	switch {
	case isFailure(line):
		return fmt.Errorf("%w: %s", errFailed, line)
	case len(fields) > 1 && isBenchmark(fields[0]):
		if err := p.result(fields); err != nil {
			return fmt.Errorf("%w: %w: %s", errBadLine, err, line)
		}
		return nil
	}
	key, value, _ := strings.Cut(line, ": ")
	value = strings.TrimSpace(value)
	switch key {
	case "pkg":
		p.pkg = value
	case "goos":
		return setOnce(&p.output.machine.goos, value)
	case "goarch":
		return setOnce(&p.output.machine.goarch, value)
	case "cpu":
		return setOnce(&p.output.machine.cpu, value)
	}
	return nil
}

// isFailure knows the lines that "go test" prints for a benchmark or a package that failed, and for one that does not
// build.
func isFailure(line string) bool {
	return line == "FAIL" || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ")
}

// isBenchmark follows the rule of package testing: what comes after Benchmark does not begin with a lower case letter.
func isBenchmark(field string) bool {
	name, ok := strings.CutPrefix(field, "Benchmark")
	first, _ := utf8.DecodeRuneInString(name)
	return ok && (name == "" || !unicode.IsLower(first))
}

func setOnce(known *string, value string) error {
	if *known != "" && *known != value {
		return fmt.Errorf("%w: %q and %q", errTwoMachines, *known, value)
	}
	*known = value
	return nil
}

// result takes in a name, the iterations, and pairs of value and unit.
func (p *parser) result(fields []string) error {
	iterations, err := strconv.Atoi(fields[1])
	if err != nil {
		return fmt.Errorf("reading iterations: %w", err)
	}
	if iterations < 1 {
		return fmt.Errorf("%d iterations", iterations)
	}
	values, err := pairs(fields[2:])
	if err != nil {
		return err
	}
	key := benchmark{pkg: p.pkg, name: fields[0]}
	s := p.byName[key]
	if s == nil {
		s = &samples{benchmark: key, byUnit: map[string][]float64{}}
		p.byName[key] = s
		p.output.benchmarks = append(p.output.benchmarks, s)
	}
	s.runs++
	for unit, value := range values {
		s.byUnit[unit] = append(s.byUnit[unit], value)
	}
	return nil
}

// pairs reads "<value> <unit>"s, at least one.
func pairs(fields []string) (map[string]float64, error) {
	if len(fields) == 0 || len(fields)%2 != 0 {
		return nil, fmt.Errorf("%d fields where pairs of a value and a unit are due", len(fields))
	}
	values := make(map[string]float64, len(fields)/2)
	for i := 0; i < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, fmt.Errorf("reading a value: %w", err)
		}
		unit := fields[i+1]
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

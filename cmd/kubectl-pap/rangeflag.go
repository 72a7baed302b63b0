// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
)

// unit is the unit of a rangeFlag.
type unit int

const (
	perSecond unit = iota
	seconds
)

// rangeFlag is a flag for a number or its bounds: 50 or 40-60, and for durations 25s or 20s-1m.
type rangeFlag struct {
	unit  unit
	value compare.Range
	text  string
	set   bool
}

// String returns the text of the flag.
func (f *rangeFlag) String() string { return f.text }

// Type is the name of the value in the help text.
func (f *rangeFlag) Type() string {
	if f.unit == seconds {
		return "duration"
	}
	return "rate"
}

// Set parses a number, or two with a hyphen between them.
func (f *rangeFlag) Set(text string) error {
	first, second, isRange := strings.Cut(text, "-")
	if !isRange {
		second = first
	}
	low, err := f.parse(first)
	if err != nil {
		return err
	}
	high, err := f.parse(second)
	if err != nil {
		return err
	}
	if low > high {
		return fmt.Errorf("%s is above %s: name the smaller one first", first, second)
	}
	// The expected value is the geometric mean of the bounds.
	f.value = compare.Range{Low: low, Expected: math.Sqrt(low * high), High: high}
	if low == high {
		f.value = compare.Exactly(low)
	}
	f.text, f.set = text, true
	return nil
}

func (f *rangeFlag) parse(text string) (float64, error) {
	if f.unit == seconds {
		value, err := time.ParseDuration(text)
		if err != nil || value < 0 || value > time.Hour {
			return 0, fmt.Errorf("%q must be a duration from 0s to 1h, such as 25s, or a range such as 20s-40s", text)
		}
		return value.Seconds(), nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value > 0 && value <= 1e9) {
		return 0, fmt.Errorf("%q must be a number above 0 and at most 1e9, such as 50, or a range such as 40-60", text)
	}
	return value, nil
}

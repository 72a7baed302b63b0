// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

const (
	// width is the maximum length of a row, in characters.
	width = 100
	// keepEvery is the interval between permanent rows; a sample may be a little early.
	keepEvery = 5*time.Second - lookEvery/2

	// legend of the table.
	legend = `
  in/s     messages published per second     desired  the decision of the policy
  backlog  published and not yet processed   current  spec.replicas, which the HPA sets
  wait     median from publish to processed  running  replicas that consume
  why      arrivals / (utilization x capacity of one replica) = replicas, rounded up, or if this is more,
           (arrivals + backlog / time to drain it) / capacity; that backlog has what arrives until new
           replicas consume. After "kept:" is the reason why the replicas stay
`
	rowFormat = "%5s  %6s  %7s  %6s  %7s  %7s  %7s  %s"

	// Terminal codes: clear the line, and do not wrap long lines.
	anew   = "\r\x1b[2K"
	noWrap = "\x1b[?7l"
	wrap   = "\x1b[?7h"
)

// screen shows samples: on a terminal it overwrites the last line with the latest; otherwise it appends lines. A row
// becomes permanent every few seconds, and when replicas change.
type screen struct {
	out  io.Writer
	live bool
	// every is the interval between permanent rows; 0 is keepEvery.
	every time.Duration

	begun bool
	kept  sample // the last permanent row
}

func (s *screen) show(one sample) {
	every := s.every
	if every == 0 {
		every = keepEvery
	}
	stays := !s.begun || one.Seconds-s.kept.Seconds >= every.Seconds() || replicas(one) != replicas(s.kept)
	if !s.begun {
		output.Printf(s.out, "%s\n", header())
		s.begun = true
	}
	if s.live {
		output.Printf(s.out, "%s%s%s%s", anew, noWrap, row(one), wrap)
	} else if stays {
		output.Printf(s.out, "%s", row(one))
	}
	if stays {
		s.kept = one
		output.Printf(s.out, "\n")
	}
}

// end ends the current line; the next sample begins a new table.
func (s *screen) end() {
	if s.begun && s.live {
		output.Printf(s.out, "%s", anew)
	}
	s.begun = false
}

func header() string {
	return strings.TrimRight(fmt.Sprintf(rowFormat, "time", "in/s", "backlog", "wait", "desired", "current", "running",
		"why"), " ")
}

func row(one sample) string {
	numbers := replicas(one)
	wait := output.Number(one.P50Seconds, 1)
	if one.P50Seconds != nil {
		wait += "s"
	}
	line := fmt.Sprintf(rowFormat, clock(time.Duration(one.Seconds*float64(time.Second))),
		strconv.FormatFloat(one.in, 'f', 0, 64), strconv.FormatInt(one.backlog(), 10), wait, numbers[0], numbers[1],
		numbers[2], one.why)
	return strings.TrimRight(cut(line, width), " ")
}

// replicas are those desired, those of the spec, and those that run.
func replicas(one sample) [3]string {
	return [...]string{
		output.Whole(one.DesiredReplicas), output.Whole(one.SpecReplicas), output.Whole(one.ReadyReplicas),
	}
}

// clock formats minutes and seconds.
func clock(at time.Duration) string {
	seconds := int(at.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// cut shortens text to the number of characters, in one line.
func cut(line string, most int) string {
	line = strings.ReplaceAll(line, "\n", " ")
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	return string([]rune(line)[:most-3]) + "..."
}

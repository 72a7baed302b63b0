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
	// width is what a row has at most, in characters.
	width = 100
	// keepEvery is the time between rows that stay; a sample that is a little early counts.
	keepEvery = 5*time.Second - lookEvery/2

	// legend of the table.
	legend = `
  in/s     messages published a second       desired  the decision of the policy
  backlog  published and not yet processed   current  spec.replicas, which the HPA sets
  wait     median from publish to processed  running  replicas that consume
  why      (arrivals + backlog / time to drain it) / capacity of one replica = replicas, rounded up
`
	rowFormat = "%5s  %6s  %7s  %6s  %7s  %7s  %7s  %s"

	// Of a terminal: begin the line anew, and do not wrap what is wider than it.
	anew   = "\r\x1b[2K"
	noWrap = "\x1b[?7l"
	wrap   = "\x1b[?7h"
)

// screen shows samples: on a terminal the last line is always the latest, rewritten; otherwise lines are appended. A
// row stays now and then, and when the replicas changed.
type screen struct {
	out  io.Writer
	live bool
	// every is the time between rows that stay; 0 is keepEvery.
	every time.Duration

	begun bool
	kept  sample // the last row that stays
}

func (s *screen) show(one sample) {
	every := s.every
	if every == 0 {
		every = keepEvery
	}
	stays := !s.begun || one.at-s.kept.at >= every || one.current != s.kept.current || one.running != s.kept.running ||
		one.desired != s.kept.desired
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

// end leaves the cursor at the beginning of a line; the next sample begins a new table.
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
	line := fmt.Sprintf(rowFormat, clock(one.at), strconv.FormatFloat(one.in, 'f', 0, 64),
		strconv.FormatInt(one.backlog(), 10),
		waited(one), one.desired, one.current, strconv.Itoa(one.running), one.why)
	return strings.TrimRight(cut(line, width), " ")
}

// progress passes lines on. On a terminal the line "... 20s so far" is rewritten, and elsewhere it is left out.
type progress struct {
	out  io.Writer
	live bool
}

func (p *progress) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	switch {
	case !strings.HasSuffix(text, " so far"):
		output.Printf(p.out, "%s%s\n", p.again(), text)
	case p.live:
		output.Printf(p.out, "%s%s%s%s", anew, noWrap, text, wrap)
	}
	return len(line), nil
}

// again begins the line anew on a terminal.
func (p *progress) again() string {
	if p.live {
		return anew
	}
	return ""
}

// clock is minutes and seconds.
func clock(at time.Duration) string {
	seconds := int(at.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

func waited(one sample) string {
	if !one.waitKnown {
		return "-"
	}
	return strconv.FormatFloat(one.wait.Seconds(), 'f', 1, 64) + "s"
}

// String is "-" for what is unknown.
func (c count) String() string {
	if !c.known {
		return "-"
	}
	return strconv.FormatInt(c.value, 10)
}

// cut shortens a line to the given number of characters, and makes one line of several.
func cut(line string, most int) string {
	line = strings.ReplaceAll(line, "\n", " ")
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	return string([]rune(line)[:most-3]) + "..."
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// section is a part of an explanation.
type section struct {
	title, note string
	lines       []line
}

// line is a labelled text.
type line struct{ label, text string }

func (s *section) add(label, format string, args ...any) {
	s.lines = append(s.lines, line{label, fmt.Sprintf(format, args...)})
}

// Column widths of an explanation.
const (
	labelWidth   = 12
	defaultWidth = 80
	minWidth     = 40
)

// text wraps at width columns.
func text(sections []section, width int) string {
	var text strings.Builder
	for _, s := range sections {
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(row(line{s.title, s.note}, "", width))
		for _, l := range s.lines {
			text.WriteString(row(l, "  ", width))
		}
	}
	return text.String()
}

// row is a line, with its text wrapped beside the label.
func row(l line, indent string, width int) string {
	margin := labelWidth + 2 // of the indent
	begin := fmt.Sprintf("%-*s", margin, indent+l.label)
	if len(strings.TrimRight(begin, " ")) >= margin {
		begin += "\n" + strings.Repeat(" ", margin)
	}
	beside := strings.Repeat(" ", margin)
	lines := strings.TrimPrefix(output.Wrap(l.text, beside, beside, width), beside)
	return strings.TrimRight(begin+lines, " ") + "\n"
}

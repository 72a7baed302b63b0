// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
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

// text wraps at width columns, and at 80 with 0.
func text(sections []section, width int) string {
	if width == 0 {
		width = defaultWidth
	}
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
	lines := strings.TrimPrefix(wrapped(l.text, beside, beside, max(minWidth, width)), beside)
	return strings.TrimRight(begin+lines, " ") + "\n"
}

// wrapped breaks a text into lines of width columns. The first line begins with first, the others with next.
func wrapped(text, first, next string, width int) string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		switch {
		case last < 0:
			lines = append(lines, first+word)
		case len([]rune(lines[last]))+1+len([]rune(word)) > width:
			lines = append(lines, next+word)
		default:
			lines[last] += " " + word
		}
	}
	return strings.Join(lines, "\n")
}

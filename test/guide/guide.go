// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package guide

import "strings"

// Section is a part of a page.
type Section struct {
	// Heading is its heading of the second level; empty for what comes before the first.
	Heading string
	// Script has the commands of its sh blocks, in order.
	Script string
}

// Sections returns the parts of a page that have commands.
func Sections(page string) (sections []Section) {
	current, inside := Section{}, false
	end := func() {
		if current.Script != "" {
			sections = append(sections, current)
		}
	}
	for line := range strings.Lines(page) {
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case line == "```\n" && inside:
			inside = false
		case inside:
			current.Script += line
		case line == "```sh\n":
			inside = true
		case isHeading:
			end()
			current = Section{Heading: strings.TrimSpace(heading)}
		}
	}
	end()
	return sections
}

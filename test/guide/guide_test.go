// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package guide

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSectionsHaveTheCommandsOfTheirBlocks(t *testing.T) {
	page := "# Title\n\n```sh\nfirst\n```\n\n## 1. Install\n\ntext\n\n```sh\nsecond \\\n  --flag\n```\n\n" +
		"```\nshown only\n```\n\n" +
		"```sh\napply <<EOF\n## a comment\nEOF\n```\n\n## No commands\n\n## Remove it\n\n```sh\nthird\n```\n"
	require.Equal(t, []Section{
		{Script: "first\n"},
		{Heading: "1. Install", Script: "second \\\n  --flag\napply <<EOF\n## a comment\nEOF\n"},
		{Heading: "Remove it", Script: "third\n"},
	}, Sections(page))
}

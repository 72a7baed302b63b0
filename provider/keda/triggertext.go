// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// shown is what messages show of a user's words.
func shown(words string) string { return shorten(backlog.Quote(words), mostShown) }

// shorten cuts a text to so many bytes, and shows that it did.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

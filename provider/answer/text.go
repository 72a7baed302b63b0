// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"strings"
	"unicode"
)

// MaxTextBytes bounds the text of an error: an event has at most 1024 bytes, and the HorizontalPodAutoscaler controller
// or KEDA adds about 200.
const MaxTextBytes = 512

// Text returns an error's text for the user: one line of at most MaxTextBytes.
func Text(err error) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	return Shorten(strings.Join(strings.Fields(printable), " "), MaxTextBytes)
}

// Shorten cuts a text to a number of bytes, and marks the cut.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

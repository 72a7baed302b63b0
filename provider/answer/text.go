// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"strings"
	"unicode"
)

// MaxTextBytes bounds the text of an error: it is put into an event, of at most 1024 bytes, behind about 200 of the
// HorizontalPodAutoscaler controller or of KEDA.
const MaxTextBytes = 512

// Text is an error's text as the user reads it: one line of at most MaxTextBytes.
func Text(err error) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	return Shorten(strings.Join(strings.Fields(printable), " "), MaxTextBytes)
}

// Shorten cuts a text to so many bytes, and shows that it did.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

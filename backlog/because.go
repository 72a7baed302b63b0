// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"strings"
)

// ReasonError is an error whose text is for users, with the reason for programs: one of the reasons of this package.
type ReasonError struct {
	Reason error
	// Cause is nil but where a program may want it, such as context.Canceled.
	Cause error
	// Text is all that is shown; it begins with the reason and names the fix.
	Text string
}

// Because returns an error whose text is the reason and what the format says.
func Because(reason error, format string, args ...any) *ReasonError {
	return &ReasonError{Reason: reason, Text: reason.Error() + ": " + fmt.Sprintf(format, args...)}
}

// Error implements error.
func (f *ReasonError) Error() string { return f.Text }

// Unwrap gives the reason and the cause.
func (f *ReasonError) Unwrap() []error {
	if f.Cause == nil {
		return []error{f.Reason}
	}
	return []error{f.Reason, f.Cause}
}

// MostQuoted is how many bytes are quoted of foreign words: such texts end up in a status and in kubectl's output.
const MostQuoted = 200

// Quote returns what is shown of foreign words: their first line without control characters, shortened to MostQuoted.
func Quote(words string) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	words = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(words, "?"))
	if len(words) <= MostQuoted {
		return words
	}
	return strings.ToValidUTF8(words[:MostQuoted], "") + "..."
}

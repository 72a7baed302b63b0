// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"math"
	"strconv"
)

// Verdict says how many messages met the latency objective in seconds, where late is the share of the others. Then it
// compares the replica-hours: "60 s objective met for 99.7% of messages, with 38% fewer replica-hours than KEDA".
func Verdict(objective, late, hours, others float64, than string) string {
	text := length(objective) + " objective met for " + strconv.FormatFloat(MetPercent(late), 'f', -1, 64) +
		"% of messages"
	if others <= 0 {
		return text
	}
	less, word := math.Round(100*(1-hours/others)), "fewer"
	if less < 0 {
		less, word = -less, "more"
	}
	if less == 0 {
		return text + ", with as many replica-hours as " + than
	}
	return text + fmt.Sprintf(", with %.0f%% %s replica-hours than %s", less, word, than)
}

// MetPercent is 100 without the share that was late, with two decimals. It is 100 only if nothing was late.
func MetPercent(late float64) float64 {
	const almost = 99.99
	percent := math.Round(1e4*(1-late)) / 100
	if late > 0 {
		return min(almost, percent)
	}
	return percent
}

// length is a time in seconds, such as 30 s, or in minutes from two minutes on.
func length(seconds float64) string {
	const minute = 60
	if seconds >= 2*minute && math.Mod(seconds, minute) == 0 {
		return fmt.Sprintf("%g min", seconds/minute)
	}
	return fmt.Sprintf("%g s", seconds)
}

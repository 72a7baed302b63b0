// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Output is what a number of replicas processes together, in messages per second.
type Output struct {
	Replicas  float64 `json:"n,omitempty"`
	Processed float64 `json:"rate,omitempty"`
}

// Seen sums up the output of a stage.
type Seen struct {
	From     time.Time `json:"from,omitzero"`
	Polls    int32     `json:"polls,omitempty"`
	Messages float64   `json:"m,omitempty"`
	Seconds  float64   `json:"s,omitempty"`
}

// plus adds a poll.
func (s Seen) plus(processed, seconds float64) Seen {
	s.Polls = min(s.Polls+1, maxInt)
	s.Messages, s.Seconds = s.Messages+processed*seconds, s.Seconds+seconds
	return s
}

// fewMessages reports whether a poll is too short to compare this rate: of long calls, one or none ends within it.
func fewMessages(in Input, processed float64) bool {
	return processed*in.Reading.Window.Seconds() < enoughMessages
}

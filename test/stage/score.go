// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// Score counts a Function's messages. Each message counts once, when it is first processed.
type Score struct{ tally *load.Tally }

func newScore(objective time.Duration) *Score { return &Score{tally: load.NewTally(objective)} }

// complete records a completion; runners call it from many goroutines.
func (s *Score) complete(c replica.Completion) { s.tally.Record(c.Sequence, c.Done.Sub(c.Published)) }

// Totals are the messages processed so far, and how many of them took longer than the objective.
func (s *Score) Totals() (done, late int) {
	counts := s.tally.Counts()
	return int(counts.Done), int(counts.Late)
}

// Recent are the times from publication to the end of processing of the messages since the last call.
func (s *Score) Recent() load.Latencies { return s.tally.Recent() }

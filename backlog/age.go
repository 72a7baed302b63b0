// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"time"
)

// age is the age of the oldest message of a subscription at the last answer that had it.
type age struct {
	at     time.Time // zero before the first answer
	oldest time.Duration
}

// observe records the age if the answer has it. Without a backlog there is no age to request.
//
// The publish time is from the producer's clock. If that clock is ahead, the messages count as new.
func (a *age) observe(sample TopicSample, answer []*SubscriptionSample) {
	var earliest time.Time
	hasBacklog := false
	for _, one := range answer {
		if one == nil {
			continue
		}
		hasBacklog = hasBacklog || one.BacklogEntries > 0
		published := one.EarliestPublishTime
		if !published.IsZero() && (earliest.IsZero() || published.Before(earliest)) {
			earliest = published
		}
	}
	switch {
	case !hasBacklog, sample.Detail.Has(Age) && earliest.IsZero():
		*a = age{at: sample.At}
	case sample.Detail.Has(Age):
		*a = age{at: sample.At, oldest: max(0, sample.At.Sub(earliest))}
	}
}

// read returns the age in seconds and its time. An age from the last answer is as fresh as the rest of the reading.
func (a *age) read(now, answeredAt time.Time) (Measurement, time.Time) {
	switch {
	case a.at.IsZero():
		return Unknown(ErrNotRequested), time.Time{}
	case now.Sub(a.at) > ageStaleAfter && a.at.Before(answeredAt):
		return Unknown(fmt.Errorf("%w: the oldest message was last read at %s", ErrStale, a.at.UTC().Format(time.RFC3339))),
			a.at
	default:
		return Known(a.oldest.Seconds()), a.at
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// firstSilence is how long an instance is not scraped after two timeouts in a row. It doubles with each further one,
	// up to longestSilence: a port that a network policy closes stays closed, and each request holds its place until it
	// times out.
	firstSilence, longestSilence = 20 * time.Second, 5 * time.Minute
	// maxSilences bounds the remembered instances.
	maxSilences = 100_000
)

// silences are the instances that did not answer in time.
type silences struct {
	of *backlog.Cache[backlog.InstanceAddress, silence]
}

// silence is of one instance: the timeouts in a row, and until when it is not scraped.
type silence struct {
	timeouts int
	until    time.Time
	why      error
}

func newSilences() silences {
	return silences{backlog.NewCache[backlog.InstanceAddress, silence](2*longestSilence, maxSilences)}
}

// reason is why an instance is not scraped now; nil if it may be.
func (s silences) reason(address backlog.InstanceAddress, now time.Time) error {
	if one, known := s.of.Get(address, now); known && now.Before(one.until) {
		return one.why
	}
	return nil
}

// record records the result of a scrape. A refused connection costs nothing, and an instance that starts refuses.
func (s silences) record(address backlog.InstanceAddress, err error, now time.Time) {
	if !backlog.TimedOut(err) {
		s.of.Delete(address)
		return
	}
	one, _ := s.of.Get(address, now)
	one.timeouts, one.why = one.timeouts+1, err
	if one.timeouts > 1 {
		doublings := min(one.timeouts-2, 4)
		one.until = now.Add(min(firstSilence<<doublings, longestSilence))
	}
	s.of.Put(address, one, now)
}

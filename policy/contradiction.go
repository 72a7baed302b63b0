// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// contradictedFactor is the factor by which the messages that were certainly there exceed Pulsar's count.
	contradictedFactor = 10
	// contradictedMessages within a rate window exceed the difference between counts of different times at a low load.
	contradictedMessages = 50
	// foundShare of the published messages is found again: finished, or in the backlog.
	foundShare = 0.5
	// confirmedShare is how far a rate may be from what confirms it.
	confirmedShare = 0.15
	// surgeFactor over the highest recent rate is a surge, and longestSurge the time after which it counts for good.
	surgeFactor  = 2
	longestSurge = 10 * time.Minute
)

// lasting is a contradiction that keeps replicas; empty for none. The counts of the instances are older than Pulsar's,
// so only a contradiction that outlasts both windows counts.
func lasting(in Input, since time.Time) string {
	r := in.Reading
	if since.IsZero() || r.At.Sub(since) < r.Window+r.Instances.Window {
		return ""
	}
	return contradiction(in)
}

// contradiction reports that Pulsar's counters cannot be right: messages that instances finished, and those that the
// backlog grew by, were certainly published, and finished messages were delivered. It is empty if any of the numbers is
// unknown.
func contradiction(in Input) string {
	r, seconds := in.Reading, in.Reading.Window.Seconds()
	grown, err := r.GrowthRate.Value()
	if err != nil {
		return ""
	}
	finished, _ := r.Instances.ProcessRate.LowerBound() // 0 if unknown
	contradicts := func(sure, counted float64) bool {
		return sure*seconds > contradictedMessages && sure > contradictedFactor*counted
	}
	if counted, err := r.PublishRate.Value(); err == nil && contradicts(finished+grown, counted) {
		return fmt.Sprintf("Pulsar counts %s/s published, but the backlog grew by "+
			"%s/s and the instances finished %s/s: look for what alters answers of its admin service", short(counted),
			short(grown), short(finished))
	}
	if counted, err := processRate(r); err == nil && contradicts(finished, counted) {
		return fmt.Sprintf("Pulsar counts %s/s processed, but the instances "+
			"finished %s/s: look for what alters answers of its admin service", short(counted), short(finished))
	}
	return ""
}

// confirmed is the reading with a publish and a process rate that the other measurements confirm. Published messages
// were finished or added to the backlog, and finished ones were published or taken from it, so one of three counters
// that is wrong differs from both others: those of Pulsar, and the instances' own. Where messages wait, others may have
// been published and have expired.
func confirmed(r backlog.Reading) backlog.Reading {
	published, err := r.PublishRate.Value()
	processed, unknown := r.ProcessRate.Value()
	finished, unanswered := r.Instances.ProcessRate.Value()
	grown, immeasurable := r.GrowthRate.Value()
	ready, uncounted := r.Ready.Value()
	if errors.Join(err, unknown, unanswered, immeasurable, uncounted) != nil || r.Window <= 0 {
		return r
	}
	seconds := r.Window.Seconds()
	added, taken := max(0, grown), max(0, -grown)
	arrived := within(published, min(processed, finished)-taken, max(processed, finished)+added+ready/seconds, seconds)
	if arrived < published {
		r.LatestPublishRate = backlog.Unknown(backlog.ErrNoRate)
	}
	done := within(processed, min(finished, published-added), max(finished, published+taken), seconds)
	r.PublishRate, r.ProcessRate = backlog.Known(arrived), backlog.Known(done)
	return r
}

// within is a rate, or the bound that it exceeds by more than the noise of a count over seconds.
func within(rate, least, most, seconds float64) float64 {
	noise := func(bound float64) float64 {
		return confirmedShare*bound + stepDeviations*math.Sqrt(max(1, bound*seconds))/seconds
	}
	return max(min(rate, most+noise(max(0, most))), least-noise(max(0, least)), 0)
}

// Type is the subscription type that counts. It cannot change while consumers are connected, so another one counts once
// none is, or after typeKept: they may all have been replaced between two polls.
type Type struct {
	Is backlog.SubscriptionType `json:"is"`
	// Since is when another type was first reported; zero while none is.
	Since time.Time `json:"since"`
}

// typeKept is longer than most faults, and than the restart of all replicas.
const typeKept = 10 * time.Minute

func (t Type) learn(in Input) Type {
	reported := in.SubscriptionType()
	other := reported != t.Is && t.Is != "" && t.Is != backlog.NoType
	switch consumers, err := in.Reading.Consumers.Value(); {
	case !other, err == nil && consumers < 1, !t.Since.IsZero() && in.Now.Sub(t.Since) >= typeKept:
		return Type{Is: reported}
	case t.Since.IsZero():
		t.Since = in.Now
	}
	return t
}

// Surge is a load far above all recent ones, until its messages are found again.
type Surge struct {
	At time.Time `json:"at"`
	// Rise and Peak are those before, Published the messages since, and Finished those that were finished.
	Rise      float64 `json:"rise"`
	Peak      float64 `json:"peak"`
	Published float64 `json:"published"`
	Finished  float64 `json:"finished"`
}

// confirm takes back what a surge taught if most of its messages were neither finished nor are in the backlog: they
// never were.
func (a *Arrivals) confirm(before *Arrivals, r backlog.Reading) {
	if before == nil || before.At.IsZero() {
		return
	}
	if a.Surge.At.IsZero() {
		if a.Peak <= surgeFactor*before.Peak {
			return
		}
		a.Surge = Surge{At: before.At, Rise: before.Rise, Peak: before.Peak}
	}
	finished, err := r.Instances.ProcessRate.Value()
	if err != nil {
		if finished, err = processRate(r); err != nil {
			return
		}
	}
	ready, err := r.Ready.Value()
	if err != nil {
		return
	}
	seconds := max(0, a.At.Sub(before.At).Seconds())
	s := &a.Surge
	s.Published, s.Finished = s.Published+a.Rate*seconds, s.Finished+finished*seconds
	switch over := a.Rate < surgeFactor*s.Peak; {
	case over && s.Finished+ready < foundShare*s.Published:
		a.Rise, a.Peak, a.Past = s.Rise, max(a.Rate, s.Peak), nil
		a.Surge = Surge{}
	case over, a.At.Sub(s.At) > longestSurge:
		a.Surge = Surge{}
	}
}

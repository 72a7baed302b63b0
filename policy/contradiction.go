// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

const (
	// contradictedFactor is how many times more messages than Pulsar counts there have to be for sure: after a change of
	// the load the counts of the instances are of an earlier time.
	contradictedFactor = 10
	// contradictedMessages within a rate window are more than counts of different times differ by at a low load.
	contradictedMessages = 50
)

// contradiction says that Pulsar's counters cannot be right: what the instances finished and what the backlog grew by
// was published for sure, and what the instances finished was delivered. Nothing is learned from such a reading, and no
// replica removed. It is nil where any of the numbers is unknown.
func contradiction(in Input) *Hold {
	r, seconds := in.Reading, in.Reading.Window.Seconds()
	grown, err := r.GrowthRate.Value()
	if err != nil {
		return nil
	}
	finished, unknown := r.Instances.ProcessRate.Value()
	if unknown != nil {
		finished = 0
	}
	contradicts := func(sure, counted float64) bool {
		return sure*seconds > contradictedMessages && sure > contradictedFactor*counted
	}
	if counted, err := r.PublishRate.Value(); err == nil && contradicts(finished+grown, counted) {
		return &Hold{Reason: HoldContradicted, Message: fmt.Sprintf("Pulsar counts %s/s published, but the backlog grew by "+
			"%s/s and the instances finished %s/s: look for what alters answers of its admin service", short(counted),
			short(grown), short(finished))}
	}
	if counted, err := r.ProcessRate.Value(); err == nil && contradicts(finished, counted) {
		return &Hold{Reason: HoldContradicted, Message: fmt.Sprintf("Pulsar counts %s/s processed, but the instances "+
			"finished %s/s: look for what alters answers of its admin service", short(counted), short(finished))}
	}
	return nil
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

const (
	// contradictedFactor is the factor by which the messages that were certainly there exceed Pulsar's count. After a
	// change of the load, the counts of the instances are from an earlier time.
	contradictedFactor = 10
	// contradictedMessages within a rate window exceed the difference between counts of different times at a low load.
	contradictedMessages = 50
)

// contradiction reports that Pulsar's counters cannot be right: messages that instances finished, and those that the
// backlog grew by, were certainly published, and finished messages were delivered. The state learns nothing from such a
// reading, and no replica is removed. It is nil if any of the numbers is unknown.
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

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

// restingShare: a replica that was busy for less of the time waited for messages repeatedly.
const restingShare = 0.9

// slack compares the calls of replicas that waited for messages with those of saturated replicas.
func (m *measured) slack(looks []look) {
	var resting, working []float64
	for i := 1; i < len(looks); i++ {
		last, now := looks[i-1], looks[i]
		for pod, after := range now.instances {
			before, there := last.instances[pod]
			calls, took := after.calls-before.calls, (after.busy - before.busy).Seconds()
			if !there || last.topic == nil || calls <= 0 || took <= 0 {
				continue
			}
			each := took / float64(calls)
			switch {
			case enough(last, after.consumer, calls):
				working = append(working, each)
			case took < restingShare*(now.at-last.at).Seconds():
				resting = append(resting, each)
			}
		}
	}
	if len(resting) > 0 && len(working) > 0 {
		m.CallSlack = known(median(resting)/median(working) - 1)
	}
}

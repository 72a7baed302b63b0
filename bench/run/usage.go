// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import "errors"

// maxUnknown is the share of samples that may be unknown.
const maxUnknown = 0.1

// Usage is what a contender did with replicas, from the begin of the load until its watch ended.
type Usage struct {
	// ReplicaHours are of pods that existed.
	ReplicaHours float64 `json:"replicaHours"`
	// ScaleChanges are how often spec.replicas changed, and MostReplicas is its highest value.
	ScaleChanges int `json:"scaleChanges"`
	MostReplicas int `json:"mostReplicas"`
}

// usageOf sums up the samples. A value holds until the next known one.
func usageOf(samples []Sample, end float64) (Usage, error) {
	const hour = 3600
	var u Usage
	var last *Sample
	unknown := 0
	for i := range samples {
		s := &samples[i]
		if s.SpecReplicas == nil || s.Pods == nil {
			unknown++
			continue
		}
		u.MostReplicas = max(u.MostReplicas, *s.SpecReplicas)
		if last != nil {
			u.ReplicaHours += float64(*last.Pods) * (s.Seconds - last.Seconds) / hour
			if *s.SpecReplicas != *last.SpecReplicas {
				u.ScaleChanges++
			}
		}
		last = s
	}
	if last == nil || float64(unknown) > maxUnknown*float64(len(samples)) {
		return Usage{}, errors.New("the API server did not tell the replicas in more than 10 % of the samples")
	}
	u.ReplicaHours += float64(*last.Pods) * max(0, end-last.Seconds) / hour
	return u, nil
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/schedule"
)

// scheduled are the limits by the schedules of the policy for each minute of the load; nil while those of the spec
// hold. Schedules begin and end with a minute. Without schedules, or without the dates of the load, there are none.
func (c Config) scheduled() (limits []*v1alpha1.Limits, err error) {
	start, known := c.Load.Start()
	if !known || len(c.Spec.Schedules) == 0 {
		return nil, nil
	}
	for minute := range (start.Second()+c.Load.Seconds())/60 + 1 {
		at, err := schedule.At(c.Spec, start.Truncate(time.Minute).Add(time.Duration(minute)*time.Minute))
		if err != nil {
			return nil, fmt.Errorf("the policy cannot be simulated: %w", err)
		}
		limits = append(limits, at)
	}
	return limits, nil
}

// limitsAt are those of a second of the load.
func (c Config) limitsAt(second int) *v1alpha1.Limits {
	if c.limits == nil {
		return nil
	}
	start, _ := c.Load.Start()
	return c.limits[(start.Second()+second)/60]
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
)

// Shape is a load over time.
type Shape = load.Shape

// day is longer than any test: what publishes ends with its context.
func day() metav1.Duration { return metav1.Duration{Duration: 24 * time.Hour} }

// Constant is the same rate in messages per second.
func Constant(perSecond float64) Shape {
	return Shape{Duration: day(), Constant: &load.Constant{Rate: perSecond}}
}

// Step is a low rate that is high from rise until fall.
func Step(low, high float64, rise, fall time.Duration) Shape {
	return Shape{Duration: day(), Step: &load.Step{
		From: low, To: high, At: metav1.Duration{Duration: rise}, Until: metav1.Duration{Duration: fall},
	}}
}

// Burst is that many messages at the start, within a time, in addition to a constant rate.
func Burst(messages, perSecond float64, within time.Duration) Shape {
	return Shape{Duration: day(), Burst: &load.Burst{
		Rate: perSecond, Messages: messages, Within: metav1.Duration{Duration: within},
	}}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

// largest number served: its thousandths, 9e15, are below 2^53 and so exact in a float64, and far from the int64 that
// a HorizontalPodAutoscaler reads them into.
const largest = 9e12

// quantity returns the number as it is served, from 0 to largest; it fails for what is not a number.
func quantity(value float64, u unit) (resource.Quantity, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return resource.Quantity{}, newFault(errUnknown, "unknown: the measurement is not a number (%g)", value)
	}
	value = min(max(value, 0), largest)
	if u != whole {
		return *resource.NewMilliQuantity(int64(math.Round(value*1000)), resource.DecimalSI), nil
	}
	return *resource.NewQuantity(int64(math.Round(value)), resource.DecimalSI), nil
}

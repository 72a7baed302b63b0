// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import "math"

// Largest number served: its thousandths, 9e15, are below 2^53 and so exact in a float64, and far from the int64 that a
// HorizontalPodAutoscaler reads them into.
const Largest = 9e12

// Number returns the number in the served range, from 0 to Largest; it fails for NaN and infinities.
func Number(value float64) (float64, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, Errorf(Unknown, "unknown: the measurement is not a number (%g)", value)
	}
	return min(max(value, 0), Largest), nil
}

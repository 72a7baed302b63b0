// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

// quantity returns the number in its served format.
func quantity(value float64, u unit) (resource.Quantity, error) {
	value, err := answer.Number(value)
	if err != nil {
		return resource.Quantity{}, err
	}
	if u != whole {
		return *resource.NewMilliQuantity(int64(math.Round(value*1000)), resource.DecimalSI), nil
	}
	return *resource.NewQuantity(int64(math.Round(value)), resource.DecimalSI), nil
}

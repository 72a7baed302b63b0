// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Rate is a number of messages per second. It is written as a decimal number, 47.3, where a Quantity would be 47300m;
// any form of a Quantity can be read.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$`
type Rate struct {
	resource.Quantity `json:",inline"`
}

const (
	// mostRate is far above any topic, and its thousandths fit into an int64.
	mostRate = 1e12
	// significantDigits limit the rounding error to less than a percent, which is below the error of any measurement.
	significantDigits = 3
	// mostDecimals are those of a Quantity in thousandths.
	mostDecimals = 3
)

// NewRate rounds messages per second to three significant digits, and to whole ones from 100 on: 0.047, 4.73, 47.3,
// 4730.
func NewRate(perSecond float64) Rate {
	perSecond = max(0, min(perSecond, mostRate))
	decimals := 0
	if perSecond > 0 {
		magnitude := int(math.Floor(math.Log10(perSecond))) + 1 // digits before the point
		decimals = min(max(significantDigits-magnitude, 0), mostDecimals)
	}
	unit := math.Pow10(decimals)
	milli := int64(math.Round(perSecond*unit)) * int64(math.Pow10(mostDecimals-decimals))
	return Rate{*resource.NewMilliQuantity(milli, resource.DecimalSI)}
}

// String writes the rate without a suffix, such as 47.3 or 4730.
func (r Rate) String() string {
	const thousandths = 1000
	return strconv.FormatFloat(float64(r.MilliValue())/thousandths, 'f', -1, 64)
}

// MarshalJSON writes what String does.
func (r Rate) MarshalJSON() ([]byte, error) {
	return json.Marshal(r.String())
}

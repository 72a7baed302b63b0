// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// Fixtures that the tests of several packages share.
var (
	noon                         = fixture.Noon
	spec, reading, input         = fixture.CapacitySpec, fixture.Reading, fixture.Input
	world, outcome, applied      = fixture.Observed, fixture.Autoscaled, fixture.Autoscaler
	disabled                     = fixture.DisabledAtZero
	mayBeZero, atZero            = fixture.MayBeZero, fixture.ScaledToZero
	byDirect, byKEDA             = fixture.ByDirect, fixture.ByKEDA
	testScaler, liveScaledObject = fixture.Scaler, fixture.ScaledObject
	randomInput                  = fixture.RandomInput
)

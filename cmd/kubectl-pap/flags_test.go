// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
)

func TestARangeIsANumberOrTwo(t *testing.T) {
	for text, want := range map[string]compare.Range{
		"50":       {Low: 50, Expected: 50, High: 50},
		"5e-1":     {Low: 0.5, Expected: 0.5, High: 0.5},
		"4-9":      {Low: 4, Expected: 6, High: 9},
		"0.25-4e0": {Low: 0.25, Expected: 1, High: 4},
	} {
		f := rangeFlag{parse: parseRate}
		require.NoError(t, f.Set(text), text)
		require.Equal(t, want, f.value, text)
	}
}

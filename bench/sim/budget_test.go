// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABudgetIsComparedOnLoadsThatCanMeetIt(t *testing.T) {
	on := func(cost, late float64) scenarioNumbers {
		return scenarioNumbers{numbers: numbers{score: score{CostOverOracle: of(cost), LatePercent: of(late)}}}
	}
	strict := performance{controller: capacityName, scenarios: []scenarioNumbers{
		on(1.2, 0), on(1.6, 1), on(2, 1.01), {numbers: numbers{score: score{CostOverOracle: of(9)}}},
	}}
	spent := performance{
		controller: capacityName + " without " + lastPercent,
		scenarios:  []scenarioNumbers{on(0.6, 0.5), on(1.6, 1.5), on(1, 50), on(1, 50)},
	}
	require.Equal(t, [][]string{
		{"loads", "cost x", "attained %", "gap pp", "worst gap pp"},
		{"2", "0.707", "99.00", "0.250", "0.50"},
	}, summary{controllers: []performance{strict, spent}}.budgetRows(),
		"not the loads of which the strict objective has more late messages than the budget, or an unknown share")
	for name, one := range map[string]performance{"no budget": strict, "no strict objective": spent} {
		require.Empty(t, summary{controllers: []performance{one}}.budgetRows(), name)
	}
}

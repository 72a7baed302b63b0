// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

// mostLate is the percentage of messages that may be late without lastPercent.
const mostLate = 1

// budgetRows compare a budget of late messages with the strict objective, on loads of which the strict one has no more
// late messages than the budget allows; without rows if one of both did not run.
func (s summary) budgetRows() [][]string {
	strict, ok := s.find(capacityName)
	spent, ran := s.find(capacityName + " without " + lastPercent)
	if !ok || !ran {
		return nil
	}
	var costs, attained, gaps []quantity
	worst := 0.0
	for i, one := range strict.scenarios {
		if !one.LatePercent.known || one.LatePercent.value > mostLate {
			continue
		}
		late := spent.scenarios[i].LatePercent
		gap := max(0, late.value-mostLate)
		worst = max(worst, gap)
		costs = append(costs, spent.scenarios[i].CostOverOracle.over(one.CostOverOracle))
		attained = append(attained, of(100).minus(late))
		gaps = append(gaps, of(gap))
	}
	return [][]string{
		{"loads", "cost x", "attained %", "gap pp", "worst gap pp"},
		{
			of(float64(len(costs))).text("%.0f"), geometric(costs).text("%.3f"), mean(attained).text("%.2f"),
			mean(gaps).text("%.3f"), of(worst).text("%.2f"),
		},
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

func TestAStatusHasTheBudgetThatIsLeft(t *testing.T) {
	shown := func(percent, left int32) *v1alpha1.Attainment {
		return &v1alpha1.Attainment{Percent: percent, BudgetLeftPercent: left}
	}
	for name, test := range map[string]struct {
		objective *int32
		late      backlog.Measurement
		want      *v1alpha1.Attainment
	}{
		"none was late":          {new(int32(99)), backlog.Known(0), shown(100, 100)},
		"a part is spent":        {new(int32(98)), backlog.Known(0.005), shown(99, 75)},
		"more were late":         {new(int32(99)), backlog.Known(0.5), shown(50, 0)},
		"66 % is no binary":      {new(int32(50)), backlog.Known(0.34), shown(66, 32)},
		"30 % is no binary":      {new(int32(90)), backlog.Known(0.07), shown(93, 30)},
		"it is unknown":          {new(int32(99)), backlog.Measurement{}, nil},
		"all have to be in time": {nil, backlog.Known(0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := measured(reading(10, 10))
			o.Policy.Spec.ObjectivePercent = test.objective
			decision, state := policy.Decide(input(3, *o.Reading), policy.State{Capacity: learned(100), Arrivals: arrivals(10)})
			decision.Late = test.late
			after := statusOf(o.Policy.Status, o, &decided{Decision: decision, State: state, Reading: *o.Reading})
			require.Equal(t, test.want, after.Attainment)
		})
	}
}

func TestABudgetAloneIsNotWorthAWrite(t *testing.T) {
	o, before := measured(reading(10, 10))
	after := before
	after.Attainment = &v1alpha1.Attainment{Percent: 99}
	o.Policy.Status = before
	require.False(t, report.Due(o, report.History{}, after))
}

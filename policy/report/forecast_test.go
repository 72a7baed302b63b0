// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

func TestAStatusHasTheLoadThatIsExpected(t *testing.T) {
	o, before := measured(reading(10, 10))
	require.Nil(t, before.Forecast)
	decision, state := policy.Decide(input(3, *o.Reading), policy.State{Capacity: learned(100), Arrivals: arrivals(10)})
	decision.Next = &forecast.Next{
		Begin: noon().Add(61500 * time.Millisecond), Spread: 7900 * time.Millisecond, PerSecond: 400, Foreseen: 38, Of: 40,
	}
	after := statusOf(o.Policy.Status, o, &decided{Decision: decision, State: state, Reading: *o.Reading})
	require.Equal(t, &v1alpha1.ExpectedLoad{
		Time:   metav1.NewTime(noon().Add(61 * time.Second)),
		Within: metav1.Duration{Duration: 8 * time.Second}, PublishRate: v1alpha1.NewRate(400), Foreseen: 38, Of: 40,
	}, after.Forecast)

	o.Policy.Status, o.Now = before, o.Now.Add(time.Second)
	after = before
	after.Forecast = &v1alpha1.ExpectedLoad{Of: 40}
	require.False(t, report.Due(o, report.History{}, after), "it alone is not worth a write")
}

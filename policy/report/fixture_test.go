// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// Fixtures that the tests of several packages share.
var (
	noon, arrivals, learned = fixture.Noon, fixture.Arrivals, fixture.Capacity
	reading, input          = fixture.Reading, fixture.Input
	world, outcome, applied = fixture.Observed, fixture.Autoscaled, fixture.Autoscaler
	saying, disabled        = fixture.ScalingActive, fixture.DisabledAtZero
	mayBeZero, atZero       = fixture.MayBeZero, fixture.ScaledToZero
	byDirect, byKEDA        = fixture.ByDirect, fixture.ByKEDA
)

// learnedState has every field set, as in the tests of its encoding.
func learnedState(t testing.TB) policy.State {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "state-v1.json"))
	require.NoError(t, err)
	state, err := policy.DecodeState(base64.StdEncoding.EncodeToString(text), noon().AddDate(1, 0, 0))
	require.NoError(t, err)
	return state
}

// decided is a decision with the state after it and its reading.
type decided struct {
	Decision policy.Decision
	State    policy.State
	Reading  backlog.Reading
}

// statusDue reports whether a status is due after another, for a policy with intervals that begin at noon.
func statusDue(before, after v1alpha1.AutoscalingPolicyStatus, now time.Time) bool {
	p := &v1alpha1.AutoscalingPolicy{Status: before}
	p.UID = "uid-332"
	return report.Due(plan.Observed{Subject: plan.Subject{Now: now, Policy: p}}, report.History{}, after)
}

// statusOf is statusAfter at the first reconcile of a process.
func statusOf(before v1alpha1.AutoscalingPolicyStatus, o plan.Observed, d *decided) v1alpha1.AutoscalingPolicyStatus {
	return statusAfter(before, o, report.History{}, d)
}

// statusAfter is the status after the one before, where only the status was written; d is nil for no decision.
func statusAfter(before v1alpha1.AutoscalingPolicyStatus, o plan.Observed, h report.History, d *decided,
) v1alpha1.AutoscalingPolicyStatus {
	o.Policy = o.Policy.DeepCopy()
	o.Policy.Status = before
	if d == nil {
		return report.Status(o, h, nil, policy.State{}, plan.Unwritten(o, plan.Actions{Violation: o.Violation}))
	}
	if o.Unknown == nil {
		o.Reading = &d.Reading
	}
	return report.Status(o, h, &d.Decision, d.State, plan.Unwritten(o, plan.Actions{Violation: o.Violation}))
}

// conditionsOf are the conditions after those before; nil for those that the policy has.
func conditionsOf(before []metav1.Condition, o plan.Observed) []metav1.Condition {
	status := o.Policy.Status
	if before != nil {
		status.Conditions = before
	}
	return statusOf(status, o, nil).Conditions
}

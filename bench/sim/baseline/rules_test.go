// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const (
	// changesWithin is how long ObjectiveMet takes to change, in seconds: 30, a poll before and after, and the interval
	// of ages.
	changesWithin = 30 + 2*pollEvery + 30
	// estimated is the factor by which a wait may be misjudged: a capacity is measured within it.
	estimated = 1.5
	// planned is the factor of replicas above the least that the load needs: they drain the backlog, and what joins it
	// meanwhile, in 0.4 of the objective.
	planned = 3
)

// rule returns what is wrong with the i-th report of a run; empty for nothing.
type rule func(r *run, i int) string

// rules of docs/status.md, by what they require.
func rules() map[string]rule {
	return map[string]rule{
		"the status has the numbers of the decision":                (*run).numbers,
		"a hold keeps the last decision":                            (*run).holds,
		"Ready is not True while Pulsar is unknown, and then alone": (*run).readyUnknown,
		"Ready is NotFollowed while the autoscaler does nothing":    (*run).readyNotFollowed,
		"Ready is ReplicasNotStarting while replicas do not run":    (*run).readyNotStarting,
		"ScalingLimited is TooManyReplicas if maxReplicas limits":   (*run).limitedByMax,
		"ObjectiveMet is Unknown only at the start or in an outage": (*run).objectiveUnknown,
		"ObjectiveMet is False only if messages were late":          (*run).objectiveMissed,
		"ObjectiveMet is not True while messages are late":          (*run).objectiveMet,
		"ObjectiveMet has the reason of the other conditions":       (*run).reasonOfOthers,
		"ObjectiveMet has a true reason":                            (*run).reasonIsTrue,
	}
}

func (r *run) numbers(i int) string {
	m := r.reports[i]
	switch s, truth := m.status, r.truth[m.second]; {
	case m.input.Unknown == nil && (s.DesiredReplicas == nil || *s.DesiredReplicas != m.decision.Replicas):
		return fmt.Sprintf("desired replicas are %d", m.decision.Replicas)
	case s.SpecReplicas == nil || int(*s.SpecReplicas) != truth.Replicas:
		return fmt.Sprintf("replicas are %d", truth.Replicas)
	case s.RunningReplicas == nil || int(*s.RunningReplicas) != truth.Replicas-truth.NotRunning:
		return fmt.Sprintf("%d replicas run", truth.Replicas-truth.NotRunning)
	case (s.Decision.Hold == nil) != (m.decision.Hold == nil):
		return "the hold is not that of the decision"
	}
	return ""
}

// holds: a hold keeps the current replicas or the last decision. Limits bound a change.
func (r *run) holds(i int) string {
	m := r.reports[i]
	if m.decision.Hold == nil || m.decision.CappedBy != "" {
		return ""
	}
	desired, current, before := m.decision.Replicas, m.input.CurrentReplicas, m.input.CurrentReplicas
	if i > 0 {
		before = r.reports[i-1].decision.Replicas
	}
	kept := desired == current || desired == before
	switch hold := m.decision.Hold.Reason; hold {
	case policy.HoldStabilizing: // a step to what the window needed was held too
		kept = kept || desired < current && desired > m.decision.Wanted
	case policy.HoldLearning: // except that one replica wakes
		kept = kept || current == 0 && desired == 1
	case policy.HoldIneffective, policy.HoldUnverified, policy.HoldNotStarting:
		kept = true
	}
	if !kept {
		return fmt.Sprintf("%s holds %d, of %d and after %d", m.decision.Hold.Reason, desired, current, before)
	}
	return ""
}

func (r *run) readyUnknown(i int) string {
	m := r.reports[i]
	ready := m.says(v1alpha1.ConditionReady)
	others := ready.Reason == v1alpha1.ReasonNotFollowed || ready.Reason == v1alpha1.ReasonReplicasNotStarting
	silent := time.Duration(0) // since the last answer, if newer ones failed
	if m.input.Reading.Trouble != nil {
		silent = m.input.Now.Sub(m.input.Reading.At)
	}
	switch isTrue := ready.Status == metav1.ConditionTrue; {
	case isTrue && m.unknown() != nil:
		return m.unknown().Error()
	case isTrue && silent > 3*pollEvery*time.Second:
		return fmt.Sprintf("Pulsar has not answered for %s", silent)
	case !isTrue && !others && m.unknown() == nil && silent < 2*pollEvery*time.Second:
		return "Pulsar is known"
	}
	return ""
}

// readyNotFollowed: an autoscaler has two syncs.
func (r *run) readyNotFollowed(i int) string {
	m := r.reports[i]
	since := i
	for since > 0 {
		before := r.reports[since-1]
		if !before.unfollowed() || before.input.CurrentReplicas != m.input.CurrentReplicas {
			break
		}
		since--
	}
	long := m.second - r.reports[since].second
	ready := m.says(v1alpha1.ConditionReady)
	switch told := ready.Reason == v1alpha1.ReasonNotFollowed; {
	case told && (!m.unfollowed() || long < 30):
		return fmt.Sprintf("%d replicas were decided for %d s, and there are %d", m.decision.Replicas, long,
			m.input.CurrentReplicas)
	case m.unfollowed() && long > 30+pollEvery && ready.Status == metav1.ConditionTrue:
		return fmt.Sprintf("not followed for %d s", long)
	}
	return ""
}

func (m reported) unfollowed() bool { return m.decision.Replicas != m.input.CurrentReplicas }

// readyNotStarting: pods may be pending for 5 minutes, and crash for 30 s.
func (r *run) readyNotStarting(i int) string {
	m := r.reports[i]
	some := func(t model.Truth) bool { return t.NotRunning > 0 }
	many := func(t model.Truth) bool { return float64(t.NotRunning) > 0.2*float64(t.Replicas) }
	ready := m.says(v1alpha1.ConditionReady)
	switch told := ready.Reason == v1alpha1.ReasonReplicasNotStarting; {
	case told && !r.ever(m.second, 30+2*pollEvery, some):
		return "all replicas have run for a minute"
	case ready.Status == metav1.ConditionTrue && r.always(m.second, 300+3*pollEvery, many):
		now := r.truth[m.second]
		return fmt.Sprintf("%d of %d replicas have not run for long", now.NotRunning, now.Replicas)
	}
	return ""
}

func (r *run) limitedByMax(i int) string {
	m := r.reports[i]
	limited := m.says(v1alpha1.ConditionScalingLimited)
	capped := m.decision.CappedBy == policy.CappedByMax
	needed := func(t model.Truth) bool { return t.Falsified || t.Needed*planned >= float64(r.Max) }
	switch told := limited.Reason == v1alpha1.ReasonTooManyReplicas; {
	case told != (capped && m.input.Unknown == nil) && limited.Reason != v1alpha1.ReasonExternalLimit:
		return fmt.Sprintf("capped by %q", m.decision.CappedBy)
	case told && int(m.decision.Replicas) != r.Max:
		return fmt.Sprintf("%d of %d replicas are desired", m.decision.Replicas, r.Max)
	case told && !r.ever(m.second, 120, needed):
		return fmt.Sprintf("%.1f of %d replicas are needed", r.truth[m.second].Needed, r.Max)
	case !told && m.decision.Hold == nil && m.input.Unknown == nil && int(m.decision.Wanted) > r.Max:
		return fmt.Sprintf("%d of %d replicas are wanted", m.decision.Wanted, r.Max)
	}
	return ""
}

func (r *run) objectiveUnknown(i int) string {
	m := r.reports[i]
	c := m.says(v1alpha1.ConditionObjectiveMet)
	if c.Status != metav1.ConditionUnknown || m.second <= changesWithin || r.outage(i, changesWithin) {
		return ""
	}
	return fmt.Sprintf("the oldest message is %d s old, the wait %.1f s", r.truth[m.second].Oldest, r.truth[m.second].Wait)
}

func (r *run) objectiveMissed(i int) string {
	m := r.reports[i]
	c := m.says(v1alpha1.ConditionObjectiveMet)
	if c.Status != metav1.ConditionFalse || r.outage(i, changesWithin+30) ||
		r.ever(m.second, changesWithin, r.late(1/estimated)) {
		return ""
	}
	return fmt.Sprintf("the oldest message is %d s old, the wait %.1f s", r.truth[m.second].Oldest, r.truth[m.second].Wait)
}

// objectiveMet ignores ages while messages are delayed.
func (r *run) objectiveMet(i int) string {
	m := r.reports[i]
	late := r.late(estimated)
	seen := func(t model.Truth) bool { return late(t) && !t.Delayed }
	c := m.says(v1alpha1.ConditionObjectiveMet)
	if c.Status != metav1.ConditionTrue || !r.always(m.second, changesWithin, seen) {
		return ""
	}
	return fmt.Sprintf("the oldest message is %d s old, the wait %.1f s", r.truth[m.second].Oldest, r.truth[m.second].Wait)
}

func (r *run) reasonOfOthers(i int) string {
	m := r.reports[i]
	c, ready := m.says(v1alpha1.ConditionObjectiveMet), m.says(v1alpha1.ConditionReady)
	limited := m.says(v1alpha1.ConditionScalingLimited)
	switch {
	case c.Status != metav1.ConditionFalse:
		return ""
	case ready.Status != metav1.ConditionTrue:
		if c.Reason != ready.Reason {
			return "Ready is " + ready.Reason
		}
		return ""
	}
	switch c.Reason {
	case v1alpha1.ReasonMessagesFail, v1alpha1.ReasonReplicasStarting, v1alpha1.ReasonCatchingUp:
		return ""
	case v1alpha1.ReasonReplicasHeld:
		if m.status.Decision.Hold == nil {
			return "there is no hold"
		}
		return ""
	case limited.Reason:
		if limited.Status != metav1.ConditionTrue {
			return "ScalingLimited is " + string(limited.Status)
		}
		return ""
	default:
		return fmt.Sprintf("Ready is True, ScalingLimited %s", limited.Reason)
	}
}

// reasonIsTrue checks the reasons that the model can judge.
func (r *run) reasonIsTrue(i int) string {
	m := r.reports[i]
	truth := r.truth[m.second]
	starting := func(t model.Truth) bool { return t.Consuming < t.Replicas }
	fails := func(t model.Truth) bool { return t.Throwing || t.Holding }
	c := m.says(v1alpha1.ConditionObjectiveMet)
	if c.Status != metav1.ConditionFalse {
		return ""
	}
	switch c.Reason {
	case v1alpha1.ReasonReplicasStarting:
		if int(m.decision.Replicas) <= truth.Replicas && !r.ever(m.second, 2*pollEvery, starting) {
			return fmt.Sprintf("all %d replicas consume", truth.Replicas)
		}
	case v1alpha1.ReasonCatchingUp:
		if int(m.decision.Replicas) > truth.Replicas || r.always(m.second, 2*pollEvery, starting) {
			return fmt.Sprintf("%d of %d replicas consume, and %d are desired", truth.Consuming, truth.Replicas,
				m.decision.Replicas)
		}
	case v1alpha1.ReasonMessagesFail:
		if !r.ever(m.second, 180, fails) {
			return "no message fails"
		}
	case v1alpha1.ReasonExternalLimit:
		if r.Downstream == nil {
			return "there is no limit behind the Function"
		}
	case v1alpha1.ReasonDispatchBlocked, v1alpha1.ReasonDispatchThrottled, v1alpha1.ReasonTooFewPartitions:
		return "the model has none"
	}
	return ""
}

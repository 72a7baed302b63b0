// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Raises are the windows by which behavior.scaleUp limits scale-up. They are empty without such limits.
type Raises struct {
	// Wanted are the smallest numbers that were wanted within the stabilization window, and Decided the smallest that were
	// decided within the longest period of a policy. The oldest is first, and each is smaller than all after it.
	Wanted  []ReplicasAt `json:"wanted,omitempty"`
	Decided []ReplicasAt `json:"decided,omitempty"`
}

// ScaleUpDisabled and ScaleDownDisabled report whether behavior forbids the direction. The bounds of the policy take
// precedence, as in a HorizontalPodAutoscaler.
func ScaleUpDisabled(spec v1alpha1.AutoscalingPolicySpec) bool {
	return scaleUpRules(spec).SelectPolicy == v1alpha1.SelectDisabled
}

// ScaleDownDisabled is described with ScaleUpDisabled.
func ScaleDownDisabled(spec v1alpha1.AutoscalingPolicySpec) bool {
	return scaleDownRules(spec).SelectPolicy == v1alpha1.SelectDisabled
}

// Cooldown is how long the Function must be idle before the last replica is removed.
func Cooldown(spec v1alpha1.AutoscalingPolicySpec) time.Duration {
	return secondsOr(scaleDownRules(spec).CooldownPeriodSeconds, defaultCooldown)
}

// slowPoll is the poll interval from which two polls exceed the default window.
const slowPoll = defaultDownWindow / 2

// downWindow is the stabilization window of a scale-down. It covers at least two slow polls.
func downWindow(in Input) time.Duration {
	window := secondsOr(scaleDownRules(in.Spec).StabilizationWindowSeconds, defaultDownWindow)
	if poll := in.PollInterval; poll >= slowPoll {
		return max(window, 2*poll+time.Second)
	}
	return window
}

func scaleUpRules(spec v1alpha1.AutoscalingPolicySpec) v1alpha1.ScaleUpRules {
	if spec.Behavior == nil || spec.Behavior.ScaleUp == nil {
		return v1alpha1.ScaleUpRules{}
	}
	return *spec.Behavior.ScaleUp
}

func scaleDownRules(spec v1alpha1.AutoscalingPolicySpec) v1alpha1.ScaleDownRules {
	if spec.Behavior == nil || spec.Behavior.ScaleDown == nil {
		return v1alpha1.ScaleDownRules{}
	}
	return *spec.Behavior.ScaleDown
}

func upWindow(rules v1alpha1.ScaleUpRules) time.Duration {
	return secondsOr(rules.StabilizationWindowSeconds, 0)
}

func secondsOr(field *int32, otherwise time.Duration) time.Duration {
	if field == nil {
		return otherwise
	}
	return time.Duration(*field) * time.Second
}

// limit applies behavior to a target, after the guards that were tried. The target has the current number of replicas,
// and kept is the number that was decided last.
func (r Raises) limit(in Input, current, kept, target int32, tried trial) (Raises, int32, trial) {
	rules := scaleUpRules(in.Spec)
	after := r.after(rules, in.Now, kept, target)
	switch {
	case target < current && ScaleDownDisabled(in.Spec):
		return after, current, tried.try(Hold{HoldScaleDownLimit, "behavior.scaleDown.selectPolicy is Disabled"})
	case target > current && ScaleUpDisabled(in.Spec):
		return after, current, tried.try(Hold{HoldScaleUpLimit, "behavior.scaleUp.selectPolicy is Disabled"})
	case target <= kept:
		return after, target, tried
	}
	if window := upWindow(rules); window > 0 {
		h := Hold{Reason: HoldScaleUpStabilized}
		if least := max(kept, smallestWithin(after.Wanted, in.Now, window)); least < target {
			target, h.Message = least, fmt.Sprintf("%d replicas were enough within "+
				"behavior.scaleUp.stabilizationWindowSeconds (%d)", least, *rules.StabilizationWindowSeconds)
		}
		tried = tried.try(h)
	}
	if len(rules.Policies) > 0 {
		h := Hold{Reason: HoldScaleUpLimit}
		if most := max(kept, after.allowed(rules, in.Now)); most < target {
			target, h.Message = most, fmt.Sprintf("behavior.scaleUp.policies allow up to %d replicas now", most)
		}
		tried = tried.try(h)
	}
	return after, target, tried
}

// after are the windows with the last decision and the new target. A stabilization window begins with the replicas that
// were there, so that the first raise waits for it.
func (r Raises) after(rules v1alpha1.ScaleUpRules, now time.Time, kept, target int32) Raises {
	var after Raises
	if window := upWindow(rules); window > 0 {
		wanted := r.Wanted
		if len(wanted) == 0 {
			wanted = []ReplicasAt{{now, kept}}
		}
		after.Wanted = slide(wanted, ReplicasAt{now, target}, window, -1)
	}
	longest := time.Duration(0)
	for _, p := range rules.Policies {
		longest = max(longest, period(p))
	}
	if longest > 0 {
		after.Decided = slide(r.Decided, ReplicasAt{now, kept}, longest, -1)
	}
	return after
}

// allowed is the largest number that the policies allow now: each counts from the smallest number within its period.
// Percentages of zero replicas count from one.
func (r Raises) allowed(rules v1alpha1.ScaleUpRules, now time.Time) int32 {
	most := int64(math.MaxInt32)
	for i, p := range rules.Policies {
		from := int64(smallestWithin(r.Decided, now, period(p)))
		allows := from + int64(p.Value)
		if p.Type == v1alpha1.PercentScalingPolicy {
			from = max(1, from)
			allows = from + (from*int64(p.Value)+percent-1)/percent
		}
		switch {
		case i == 0:
			most = allows
		case rules.SelectPolicy == v1alpha1.SelectMin:
			most = min(most, allows)
		default:
			most = max(most, allows)
		}
	}
	return int32(min(most, math.MaxInt32))
}

func period(p v1alpha1.ScalingPolicy) time.Duration {
	return time.Duration(p.PeriodSeconds) * time.Second
}

// smallestWithin is the smallest number of a window, which includes the newest one; without a window there is no limit.
func smallestWithin(numbers []ReplicasAt, now time.Time, window time.Duration) int32 {
	for _, r := range numbers {
		if now.Sub(r.At) < window {
			return r.Replicas
		}
	}
	return math.MaxInt32
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// notStartedShare: if this share of the replicas has not started for notStartedFor, more would not start either.
	notStartedShare = 0.2
	notStartedFor   = 5 * time.Minute
	// keySharedInterval is the minimum time between changes of a Key_Shared subscription. Each change moves hashes, which
	// are blocked until their former consumer is done.
	keySharedInterval = 2 * time.Minute
	// restartStarts is the minimum time, in starts, between changes that restart all replicas.
	restartStarts = 4
	// minScaleDown is the share of the replicas that a scale-down has to save, since each change moves messages between
	// replicas. One that restarts all replicas has to save more.
	minScaleDown, minRestartingScaleDown = 0.10, 0.3
	// immediateShare is the share of the eventual saving that a scale-down has to save at once.
	immediateShare = 0.7
)

// holdUp returns the reason not to add replicas; nil for none.
func holdUp(in Input, state State) *Hold {
	if in.Reading.Blocked {
		return &Hold{
			Reason:  HoldBlocked,
			Message: "dispatch is blocked until consumers acknowledge messages: more replicas would receive none",
		}
	}
	if in.Reading.Throttled {
		return &Hold{
			Reason:  HoldThrottled,
			Message: "a dispatch rate limit of Pulsar throttles messages: more replicas would receive no more",
		}
	}
	if state.missesObjective(in) {
		return nil
	}
	return state.holdAfterChange(in)
}

// notStarting is NotStarting for the target's current replicas.
func notStarting(in Input) *Hold {
	if in.without(PartPods) {
		return nil
	}
	return NotStarting(in.Pods, in.CurrentReplicas, in.Now)
}

// NotStarting returns the reason that replicas do not start, so that more would not either; nil if they start or if
// that is unknown.
func NotStarting(pods *Pods, replicas int32, now time.Time) *Hold {
	if pods == nil {
		return nil
	}
	many := notStartedShare * float64(replicas)
	if float64(pods.CrashLooping) > many {
		return &Hold{
			Reason: HoldCrashLooping,
			Message: fmt.Sprintf("%d of %d replicas are in a crash loop: look at their logs",
				pods.CrashLooping, replicas),
		}
	}
	if since := now.Sub(pods.UnreadySince); float64(pods.Unready) > many && since > notStartedFor {
		return &Hold{
			Reason: HoldPodsPending,
			Message: fmt.Sprintf("%d of %d replicas have not started for %s: look at the events of their pods",
				pods.Unready, replicas, since.Truncate(time.Second)),
		}
	}
	return nil
}

// holdAfterChange holds replicas while the last change still has a cost.
func (s State) holdAfterChange(in Input) *Hold {
	since := in.Now.Sub(s.Start.Changed)
	if in.Reading.Type == backlog.KeyShared && since < keySharedInterval && !in.without(PartKeyShared) {
		return &Hold{
			Reason: HoldRebalancing,
			Message: fmt.Sprintf("keys moved to other replicas %s ago: changes are at least %s apart",
				since.Truncate(time.Second),
				keySharedInterval),
		}
	}
	if !s.Start.restarts(in) {
		return nil
	}
	if pause := fromSeconds(restartStarts * s.Start.seconds(in)); since < pause {
		return &Hold{
			Reason: HoldRestarting,
			Message: fmt.Sprintf("the change %s ago restarted all replicas: changes are at least %s apart",
				since.Truncate(time.Second), pause),
		}
	}
	return nil
}

// holdDown returns the reason not to remove replicas; nil for none.
func holdDown(in Input, state State) *Hold {
	if age := in.Now.Sub(in.Reading.At); age > in.FreshFor {
		return &Hold{Reason: HoldOldReading, Message: oldReading(age, in.Reading.Trouble)}
	}
	if !in.Reading.Coverage.Complete() {
		return holdPartial(in)
	}
	if err := unknownLoad(in); err != nil {
		return &Hold{Reason: HoldUnknown, Message: err.Error()}
	}
	if held := contradiction(in); held != nil {
		return held
	}
	if s := state.Start; s.Open {
		return &Hold{
			Reason:  HoldStabilizing,
			Message: fmt.Sprintf("replicas have been starting for %s", in.Now.Sub(s.Changed).Truncate(time.Second)),
		}
	}
	if in.Pods != nil && in.Pods.Updating && !in.without(PartPods) {
		return &Hold{Reason: HoldUpdating, Message: "a rollout is replacing pods"}
	}
	return state.holdAfterChange(in)
}

// holdPartial keeps replicas while some topics or partitions are unknown.
func holdPartial(in Input) *Hold {
	return &Hold{Reason: HoldPartial, Message: in.Reading.Coverage.Err().Error()}
}

// stabilizedDown returns the largest number that was needed within the window, once this saves most of what the
// scale-down will save. A scale-down that the autoscaler has not followed yet may become larger.
func stabilizedDown(in Input, state State, wanted int32) (target int32, held *Hold) {
	current := in.CurrentReplicas
	if ceiling := state.Plateau.Ceiling; ceiling < current && wanted <= ceiling {
		return ceiling, nil // at once: a plateau shows when fewer replicas process as much
	}
	largest := largestWithin(state.Recommendations, in.Now, state.Recurrence.window(in))
	target = min(current, max(wanted, largest.Replicas))
	from := state.Decided.from(current)
	saved, least := float64(from-target), minScaleDown
	if state.Start.restarts(in) {
		least = minRestartingScaleDown
	}
	patient := saved < immediateShare*float64(from-wanted) && !in.without(PartPatientDown)
	if target > wanted {
		held = &Hold{
			Reason: HoldStabilizing,
			Message: fmt.Sprintf("%d replicas were needed %s ago, within %s",
				largest.Replicas, in.Now.Sub(largest.At).Truncate(time.Second), state.Recurrence.explain(in)),
		}
	}
	switch {
	case held != nil && (patient || target == current):
		return current, held
	case saved < least*float64(from) && !in.without(PartLeastDown):
		return current,
			&Hold{
				Reason: HoldSmallChange,
				Message: fmt.Sprintf("%d of %d replicas are enough, which saves less than %.0f %%", target,
					from, percent*least),
			}
	default:
		return target, held
	}
}

// explainManualRaise names the writer of the replicas in a hold, if the stabilization window keeps them for a manual
// scale.
func (in Input) explainManualRaise(held *Hold, target int32) *Hold {
	raise, window := in.ManualRaise, downWindow(in)
	if raise == nil || held == nil || held.Reason != HoldStabilizing || target != in.CurrentReplicas ||
		target != raise.Replicas || in.Now.Sub(raise.At) >= window {
		return held
	}
	return &Hold{
		Reason: HoldStabilizing,
		Message: fmt.Sprintf("%d replicas were written by %s %s ago, and are kept for the stabilization window of %s",
			raise.Replicas, raise.By, in.Now.Sub(raise.At).Truncate(time.Second), window),
	}
}

func oldReading(age time.Duration, trouble error) string {
	if trouble == nil {
		return fmt.Sprintf("the last answer from Pulsar is %s old", age.Truncate(time.Second))
	}
	return fmt.Sprintf("the last valid answer from Pulsar is %s old: %s", age.Truncate(time.Second), trouble)
}

// fromSeconds rounds down to tenths of a second, and does not overflow.
func fromSeconds(seconds float64) time.Duration {
	const most = 1e9
	return time.Duration(min(seconds, most)*10) * (time.Second / 10)
}

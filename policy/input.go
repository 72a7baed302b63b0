// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Input is all that a decision rests on.
type Input struct {
	Now  time.Time
	Spec v1alpha1.AutoscalingPolicySpec
	// CurrentReplicas is the target's spec.replicas.
	CurrentReplicas int32
	// NeverZero says that the target may not be without replicas whatever minReplicas says: a batch source discovers its
	// work with one of its own, and the function worker runs at least one.
	NeverZero bool
	// Restarts says that each change of the number of replicas is known to restart all of them; others are found out.
	Restarts bool
	// Frozen keeps the replicas as they are whatever the bounds, such as while a rollout is paused; nil for no reason to.
	Frozen *Hold
	// Recreated says that the target was deleted and recreated since the last decision: the replicas that it has were
	// not decided here, and that all of them started is no consequence of their number.
	Recreated bool
	// ManualRaise is what a user or another controller raised the replicas to last; nil for nothing known. It explains a
	// hold, and decides nothing.
	ManualRaise *ManualRaise
	// Reading of the target's subscription; ignored when Unknown is set.
	Reading backlog.Reading
	// Promised is how the replicas subscribe by the target's fields: what counts while the broker does not know, as after
	// it loaded the topics of a target at zero. Empty for nothing promised.
	Promised backlog.SubscriptionType
	// Partitions of the subscription: with Failover replicas are sized for the busiest. Empty where they are not known.
	Partitions []backlog.PartitionReading
	// Without leaves parts of the algorithm out, to see what each is worth; only the simulator sets it.
	Without Part
	// Unknown is why there is no reading: one of the reasons of package backlog.
	Unknown error
	// ReadyAtLeast is how many messages wait for sure while Unknown is set, on those topics that are known; 0 for none.
	ReadyAtLeast float64
	// Own is how many replicas of the target may consume: its pods that run, those that end among them, or as many as it
	// has replicas where its pods are not known. Nil where all that consumes is taken for the target's.
	Own *int32
	// Pods of the target; nil where they may not be read.
	Pods *Pods
	// FreshFor is how old a reading may be to take replicas down on: three poll intervals.
	FreshFor time.Duration
}

// SubscriptionType is what the broker reports, or what the target's fields promise where it does not know.
func (in Input) SubscriptionType() backlog.SubscriptionType {
	if in.Promised != "" && (in.Reading.Type == backlog.NoType || in.Reading.Type == "") {
		return in.Promised
	}
	return in.Reading.Type
}

// least is how few replicas there may be.
func (in Input) least() int32 {
	least := LeastReplicas(in.Spec)
	if in.NeverZero {
		return max(1, least)
	}
	return least
}

// LeastReplicas is minReplicas, or its default for a policy that never met an API server.
func LeastReplicas(spec v1alpha1.AutoscalingPolicySpec) int32 {
	if spec.MinReplicas == nil {
		return 1
	}
	return *spec.MinReplicas
}

// ManualRaise is a number of replicas, when it was noticed, and what wrote it, such as kubectl scale.
type ManualRaise struct {
	ReplicasAt
	By string
}

// Pods are the target's, as Kubernetes sees them.
type Pods struct {
	// Unready of them do not run or are not ready, the oldest since UnreadySince.
	Unready      int32
	UnreadySince time.Time
	// CrashLooping of them ended with an error and wait for their next start.
	CrashLooping int32
	// Updating says that pods are being replaced by those of a new revision.
	Updating bool
	// Running is how many have a container that runs, those that are being deleted among them; nil where it is not known.
	Running *int32
}

// Decision is a number of replicas and how it came about.
type Decision struct {
	Time time.Time
	// Replicas to run, within minReplicas and maxReplicas.
	Replicas int32
	// Wanted is what the winning strategy asked for, before bounds and holds.
	Wanted int32
	// Strategy that asked for the most; empty when nothing could be computed.
	Strategy v1alpha1.StrategyType
	// Equation with its numbers, for a person; empty when nothing could be computed.
	Equation string
	// Terms of the equation of strategy Capacity; empty for others and when nothing could be computed.
	Terms []Term
	// CappedBy names the bound that changed the result: minReplicas or maxReplicas, or nothing.
	CappedBy string
	// Hold says why the result was not followed; nil when it was.
	Hold *Hold
	// Wait is how long a message published now would wait.
	Wait backlog.Measurement
	// Surplus is how many consumers are not the target's, once they have stayed for some time.
	Surplus int32
}

// Term is one number of an equation, such as planned, 500, "messages/s".
type Term struct {
	Name  string
	Value float64
	Unit  string
}

// Hold says why replicas were kept.
type Hold struct {
	Reason  string
	Message string
}

// Reasons to hold.
const (
	// HoldUnknown: there is no reading to decide on.
	HoldUnknown = "BacklogUnknown"
	// HoldOldReading: the reading is too old to take replicas down on.
	HoldOldReading = "ReadingTooOld"
	// HoldLearning: what one replica processes is not known yet.
	HoldLearning = "CapacityNotLearned"
	// HoldStabilizing: a larger recommendation within the stabilization window is still in force.
	HoldStabilizing = "ScaleDownStabilized"
	// HoldWithinObjective: what waits is within the objective, so what there is may be used.
	HoldWithinObjective = "WithinObjective"
	// HoldIneffective: more replicas were seen to process no more.
	HoldIneffective = "ScalingIneffective"
	// HoldUnverified: whether the replicas added last process more is not known yet.
	HoldUnverified = "ScaleUpUnverified"
	// HoldSmallChange: too little to be worth an action.
	HoldSmallChange = "ChangeTooSmall"
	// HoldThrottled: a dispatch rate limit of Pulsar holds messages back.
	HoldThrottled = "DispatchThrottled"
	// HoldBlocked: dispatch has stopped until messages are acknowledged, so more replicas would get nothing.
	HoldBlocked = "DispatchBlocked"
)

// Reasons to hold that follow from the target's pods and from zero.
const (
	// HoldPodsPending: replicas that were asked for do not start, so more would not either.
	HoldPodsPending = "PodsPending"
	// HoldCrashLooping: replicas end with an error again and again.
	HoldCrashLooping = "CrashLooping"
	// HoldUpdating: pods are being replaced by those of a new revision.
	HoldUpdating = "Updating"
	// HoldRebalancing: Key_Shared hashes wait for their former consumer after the last change.
	HoldRebalancing = "KeySharedRebalancing"
	// HoldRestarting: each change restarts all replicas, and the last one is not long ago.
	HoldRestarting = "RestartsOnScale"
	// HoldRolloutPaused: a rollout of the target is paused, and a change of the number of replicas would let it go.
	HoldRolloutPaused = "RolloutPaused"
	// HoldWorkerUpdate: a function worker restarts all instances at each change, and the last one is not long ago.
	HoldWorkerUpdate = "WorkerUpdateInterval"
	// HoldWorkerUnknown: the function worker does not say how the instances are, or none runs.
	HoldWorkerUnknown = "WorkerStateUnknown"
	// HoldWakeBackoff: replicas woke for messages that they could not process.
	HoldWakeBackoff = "WakeBackoff"
	// HoldNotTimed: how busy replicas are is not known.
	HoldNotTimed = "UtilizationUnknown"
	// HoldSwitchedOff: replicas were set to 0 by hand.
	HoldSwitchedOff = "SwitchedOff"
	// HoldIdling: nothing arrives, but not for long enough to go to zero.
	HoldIdling = "NotIdleForLong"
)

// Bounds that can change a result, as Decision.CappedBy says them.
const (
	CappedByPartitions = "partitions"
	CappedByMin        = "minReplicas"
	CappedByMax        = "maxReplicas"
)

// defaultLatencyObjective, defaultDownWindow and defaultCooldown are the defaults of the CRD, for policies that never
// met an API server: tests and the simulator.
const (
	defaultLatencyObjective = time.Minute
	defaultDownWindow       = 90 * time.Second
	defaultCooldown         = 5 * time.Minute
)

func latencyObjective(spec v1alpha1.AutoscalingPolicySpec) time.Duration {
	if spec.LatencyObjective.Duration <= 0 {
		return defaultLatencyObjective
	}
	return spec.LatencyObjective.Duration
}

// downWindow is the stabilization window; one that is shorter than two slow polls would hold a single answer.
func downWindow(in Input) time.Duration {
	window := defaultDownWindow
	if b := in.Spec.Behavior; b != nil && b.ScaleDown != nil && b.ScaleDown.StabilizationWindowSeconds != nil {
		window = time.Duration(*b.ScaleDown.StabilizationWindowSeconds) * time.Second
	}
	return atLeastTwoPolls(in, window)
}

// Cooldown is how long nothing may happen before the last replica goes.
func Cooldown(spec v1alpha1.AutoscalingPolicySpec) time.Duration {
	if b := spec.Behavior; b != nil && b.ScaleDown != nil && b.ScaleDown.CooldownPeriodSeconds != nil {
		return time.Duration(*b.ScaleDown.CooldownPeriodSeconds) * time.Second
	}
	return defaultCooldown
}

// drainWindow is that of what the backlog needs, which passes sooner.
func drainWindow(in Input) time.Duration { return atLeastTwoPolls(in, downWindow(in)/2) }

// slowPoll is a poll interval from which two polls are longer than half the default window.
const slowPoll = 30 * time.Second

func atLeastTwoPolls(in Input, window time.Duration) time.Duration {
	if poll := in.pollInterval(); poll >= slowPoll {
		return max(window, 2*poll+time.Second)
	}
	return window
}

// pollInterval follows from FreshFor, which is three of them.
func (in Input) pollInterval() time.Duration { return in.FreshFor / 3 }

func strategies(spec v1alpha1.AutoscalingPolicySpec) []v1alpha1.Strategy {
	if len(spec.Strategies) == 0 {
		return []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	}
	return spec.Strategies
}

// bound keeps replicas within minReplicas and maxReplicas and names the bound that mattered; or where they are, when
// they have to stay there.
func (in Input) bound(replicas int32) (bounded int32, by string) {
	least := in.least()
	switch {
	case in.Frozen != nil:
		return in.CurrentReplicas, ""
	case replicas > in.Spec.MaxReplicas:
		return in.Spec.MaxReplicas, CappedByMax
	case replicas < least:
		return least, CappedByMin
	default:
		return replicas, ""
	}
}

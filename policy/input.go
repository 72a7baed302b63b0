// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
)

// Input is all that a decision depends on.
type Input struct {
	Now  time.Time
	Spec v1alpha1.AutoscalingPolicySpec
	// CurrentReplicas is the target's spec.replicas.
	CurrentReplicas int32
	// NeverZero is true if the target needs a replica whatever minReplicas is: a batch source discovers its work with one,
	// and the function worker runs at least one.
	NeverZero bool
	// Restarts is true if each change of the replicas is known to restart all of them. Other restarts are learned.
	Restarts bool
	// Frozen keeps the current replicas whatever the bounds, such as during a paused rollout; nil if they may change.
	Frozen *Hold
	// Recreated is true if the target was deleted and recreated since the last decision: no decision set its replicas, and
	// no change of their number restarted them.
	Recreated bool
	// ManualRaise is the last increase of the replicas by a user or another controller; nil for none. It explains a hold,
	// and does not change the decision.
	ManualRaise *ManualRaise
	// Reading of the target's subscription; ignored when Unknown is set.
	Reading backlog.Reading
	// Promised is the subscription type that the target's fields define; empty if they do not. It counts while the broker
	// does not report a type, such as at zero.
	Promised backlog.SubscriptionType
	// Partitions of the subscription: with Failover, replicas are sized for the busiest. Empty if they are unknown.
	Partitions []backlog.PartitionReading
	// Unknown is why there is no reading: one of the errors of package backlog.
	Unknown error
	// Own is the number of the target's replicas that may consume: its running pods, terminating ones included, or its
	// replicas if the pods are unknown. Nil if all consumers belong to the target.
	Own *int32
	// Pods of the target; nil if the controller may not read them.
	Pods *Pods
	// PollInterval is that of the topics. Readings may be older by Rested, since the topics were at rest and polled less
	// often.
	PollInterval, Rested time.Duration
	// Lag is how long the autoscaler takes to set the decided number; 0 if unknown, and where the controller writes it.
	Lag time.Duration
	// Upstream is what the Functions that publish to all topics of the subscription will send; nil if that is unknown.
	Upstream *Outlook
}

// FreshPolls is the maximum age of a reading for a scale-down, in poll intervals: one failed and one late poll are
// normal.
const FreshPolls = 3

func (in Input) freshFor() time.Duration { return FreshPolls*in.PollInterval + in.Rested }

// SubscriptionType is the type that the broker reports, or the promised one if the broker reports none.
func (in Input) SubscriptionType() backlog.SubscriptionType {
	if in.Promised != "" && (in.Reading.Type == backlog.NoType || in.Reading.Type == "") {
		return in.Promised
	}
	return in.Reading.Type
}

func (in Input) minReplicas() int32 {
	bound := MinReplicas(in.Spec)
	if in.NeverZero {
		return max(1, bound)
	}
	return bound
}

// MinReplicas is minReplicas of the spec, or its default where no API server has set it.
func MinReplicas(spec v1alpha1.AutoscalingPolicySpec) int32 {
	if spec.MinReplicas == nil {
		return 1
	}
	return *spec.MinReplicas
}

// ManualRaise is a number of replicas, when it was noticed, and its writer, such as kubectl scale.
type ManualRaise struct {
	ReplicasAt
	By string
}

// Pods is the state of the target's pods in Kubernetes.
type Pods struct {
	// Unready pods do not run or are not ready, and the rest is Ready. More than NotStartedShare of all have been
	// unready since UnreadySince; zero while fewer are.
	Ready, Unready int32
	UnreadySince   time.Time
	// CrashLooping pods ended with an error and wait for their next start.
	CrashLooping int32
	// Updating is true while a rollout is replacing pods.
	Updating bool
	// Running is the number of pods with a running container, terminating ones included; nil if unknown.
	Running *int32
	// Starts are the newest pods of instances of which all containers run, without a restart, the newest first; at most
	// MostStarts.
	Starts []PodStart
}

// MostStarts bounds Pods.Starts.
const MostStarts = 20

// PodStart is how the pod of an instance started.
type PodStart struct {
	Pod      string
	Instance int32
	Created  time.Time
	// Scheduled is the time from its creation until it had a node, and Running until all its containers ran. Of that, its
	// init containers ran for Initializing.
	Scheduled, Initializing, Running time.Duration
}

// Decision is a number of replicas with its reasons.
type Decision struct {
	Time time.Time
	// Replicas to run, within minReplicas and maxReplicas.
	Replicas int32
	// Wanted is what the winning strategy recommended, before bounds and holds.
	Wanted int32
	// Strategy with the largest recommendation; empty when none could be computed.
	Strategy v1alpha1.StrategyType
	// Equation with its numbers, for the user; empty when none could be computed.
	Equation string
	// Terms of the equation of strategy Capacity; zero for other strategies.
	Terms Terms
	// CappedBy names the bound that changed the result; empty for none.
	CappedBy string
	// Hold is the reason that the recommendation was not followed; nil if it was.
	Hold *Hold
	// PassedGuards are the reasons to hold that were tried in this order and did not hold; empty if no change was wanted.
	PassedGuards []string
	// Wait is how long a message published now would wait.
	Wait backlog.Measurement
	// Service is how the reading compares with the latency objective.
	Service Service
	// Late is the share of the messages of objectiveWindow that were late, from 0 to 1; unknown without objectivePercent.
	Late backlog.Measurement
	// Discounted messages of the backlog do not count as work: replicas were idle while the messages were in the backlog.
	Discounted float64
	// Next is the load that is expected next; nil if none is.
	Next *forecast.Next
	// Outlook is what the replicas will process; nil if that is unknown.
	Outlook *Outlook
}

// Terms are rates in messages per second, messages, and the time to drain them in seconds.
type Terms struct{ Arriving, Utilization, Capacity, Backlog, Drain float64 }

// Hold is the reason that replicas were kept.
type Hold struct {
	Reason  string
	Message string
}

// Reasons to hold.
const (
	// HoldUnknown: there is no reading, some topics or partitions are missing in it, so the load may be larger, or the
	// backlog or the instances contradict Pulsar's counters.
	HoldUnknown = "BacklogUnknown"
	// HoldLearning: the capacity of a replica, or its utilization, is unknown.
	HoldLearning = "CapacityNotLearned"
	// HoldStabilizing: it is too early for a scale-down. More replicas were needed recently, replicas start, a rollout
	// replaces them, the reading is old, or the Function has not been idle for long.
	HoldStabilizing = "ScaleDownStabilized"
	// HoldWithinObjective: the current replicas meet the objective.
	HoldWithinObjective = "WithinObjective"
	// HoldDiscounted: more replicas would be needed if the discounted backlog were work.
	HoldDiscounted = "BacklogDiscounted"
	// HoldIneffective: more replicas processed no more.
	HoldIneffective = "ScalingIneffective"
	// HoldUnverified: it is unknown whether the last replicas added process more.
	HoldUnverified = "ScaleUpUnverified"
	// HoldDispatchLimited: Pulsar dispatches no more, by a rate limit, or until consumers acknowledge messages.
	HoldDispatchLimited = "DispatchLimited"
	// HoldNotStarting: replicas are pending or in a crash loop, so more would be too.
	HoldNotStarting = "ReplicasNotStarting"
	// HoldRolloutPaused: a rollout of the target is paused, and a change of the replicas would resume it.
	HoldRolloutPaused = "RolloutPaused"
	// HoldWorkerUpdate: a function worker restarts all instances at each change, and the last one is recent.
	HoldWorkerUpdate = "WorkerUpdateInterval"
	// HoldWorkerUnknown: the function worker does not report the state of the instances, or there is no worker.
	HoldWorkerUnknown = "WorkerStateUnknown"
	// HoldWakeBackoff: replicas woke for messages that they could not process.
	HoldWakeBackoff = "WakeBackoff"
	// HoldSwitchedOff: the user set replicas to 0.
	HoldSwitchedOff = "SwitchedOff"
	// HoldReset: a tool that applies a manifest reset the replicas again and again.
	HoldReset = "ReplicasReset"
	// HoldScaleUpStabilized: fewer replicas were enough within the stabilization window of scale-up. It and the next two
	// have the names that a HorizontalPodAutoscaler has for them.
	HoldScaleUpStabilized = "ScaleUpStabilized"
	// HoldScaleUpLimit and HoldScaleDownLimit: behavior allows no more change, or none in this direction.
	HoldScaleUpLimit   = "ScaleUpLimit"
	HoldScaleDownLimit = "ScaleDownLimit"
)

// Bounds that can change a result, as Decision.CappedBy names them.
const (
	CappedByPartitions = "partitions"
	CappedByMin        = "minReplicas"
	CappedByMax        = "maxReplicas"
)

// defaultLatencyObjective and the others are the defaults of the CRD, for tests and the simulator, which have no API
// server.
const (
	defaultLatencyObjective = time.Minute
	defaultObjectiveWindow  = time.Hour
	defaultDownWindow       = 30 * time.Second
	defaultCooldown         = 5 * time.Minute
)

func strategies(spec v1alpha1.AutoscalingPolicySpec) []v1alpha1.Strategy {
	if len(spec.Strategies) == 0 {
		return []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	}
	return spec.Strategies
}

// bound keeps replicas within minReplicas and maxReplicas and names the bound that changed them. Frozen replicas stay
// as they are.
func (in Input) bound(replicas int32) (bounded int32, by string) {
	lower := in.minReplicas()
	switch {
	case in.Frozen != nil:
		return in.CurrentReplicas, ""
	case replicas > in.Spec.MaxReplicas:
		return in.Spec.MaxReplicas, CappedByMax
	case replicas < lower:
		return lower, CappedByMin
	default:
		return replicas, ""
	}
}

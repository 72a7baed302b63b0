// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// explanation is why a policy has its replicas. It has the last decision, or with --at what was said about a time.
// What is absent is unknown. Types of the API are those of the status.
type explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Target    string `json:"target,omitempty"`
	// MinReplicas and MaxReplicas are those of active schedules, or of the spec.
	MinReplicas             int32                   `json:"minReplicas"`
	MaxReplicas             int32                   `json:"maxReplicas"`
	ActiveSchedules         []v1alpha1.ScheduleName `json:"activeSchedules,omitempty"`
	LatencyObjectiveSeconds float64                 `json:"latencyObjectiveSeconds"`
	Mode                    v1alpha1.Mode           `json:"mode"`
	Generation              int64                   `json:"generation"`
	ObservedGeneration      int64                   `json:"observedGeneration,omitempty"`

	*lastDecision
	*past
}

// lastDecision is the decision in the status, from the signals to what runs.
type lastDecision struct {
	Measured *measured `json:"measured,omitempty"`
	Learned  *learned  `json:"learned,omitempty"`
	Decided  *decided  `json:"decided,omitempty"`
	// Changes are what would give another number of replicas.
	Changes   []change `json:"changes,omitempty"`
	WrittenBy writer   `json:"writtenBy"`
	Replicas  replicas `json:"replicas"`
	// Attention are the conditions that are not as they should be, and NotChecked those that nothing has checked.
	Attention  []metav1.Condition `json:"attention,omitempty"`
	NotChecked []string           `json:"notChecked,omitempty"`
	// readAt is what ages are of, and hasStatus false if the adapter has written no condition.
	readAt    time.Time
	hasStatus bool
}

type learned struct {
	LearnedAt                   metav1.Time `json:"learnedAt"`
	MessagesPerSecondPerReplica float64     `json:"messagesPerSecondPerReplica"`
	UncertaintyPercent          *int32      `json:"uncertaintyPercent,omitempty"`
	Observations                int32       `json:"observations"`
	MeasuredBusyPercent         *int32      `json:"measuredBusyPercent,omitempty"`
}

type decided struct {
	DecidedAt metav1.Time           `json:"decidedAt"`
	Strategy  v1alpha1.StrategyType `json:"strategy,omitempty"`
	Equation  string                `json:"equation,omitempty"`
	LimitedBy string                `json:"limitedBy,omitempty"`
	Expected  *expected             `json:"expected,omitempty"`
	// Attainment is of the messages of objectiveWindow, of which ObjectivePercent have to meet the objective.
	Attainment       *v1alpha1.Attainment `json:"attainment,omitempty"`
	ObjectivePercent *int32               `json:"objectivePercent,omitempty"`
	// PassedGuards are those that were tried, in order, and did not hold. HeldBy is the one that held.
	PassedGuards []string       `json:"passedGuards,omitempty"`
	HeldBy       *v1alpha1.Hold `json:"heldBy,omitempty"`
}

// expected is a load that returns.
type expected struct {
	BeginsAt                   metav1.Time `json:"beginsAt"`
	WithinSeconds              float64     `json:"withinSeconds"`
	PublishedMessagesPerSecond float64     `json:"publishedMessagesPerSecond"`
	Foreseen                   int32       `json:"foreseen"`
	Of                         int32       `json:"of"`
}

type change struct {
	What string `json:"what"`
	How  string `json:"how"`
}

// writer is what writes the replicas; without an actuator nothing does.
type writer struct {
	Actuator                v1alpha1.Actuator   `json:"actuator,omitempty"`
	HorizontalPodAutoscaler string              `json:"horizontalPodAutoscaler,omitempty"`
	ScaledObject            string              `json:"scaledObject,omitempty"`
	Reason                  string              `json:"reason,omitempty"`
	Suspended               *v1alpha1.TakenOver `json:"suspended,omitempty"`
}

type replicas struct {
	Decided       *int32                    `json:"decided,omitempty"`
	Spec          *int32                    `json:"spec,omitempty"`
	Running       *int32                    `json:"running,omitempty"`
	Consuming     *int32                    `json:"consuming,omitempty"`
	Start         *v1alpha1.ReplicaStart    `json:"start,omitempty"`
	LastScaleDown *v1alpha1.ScaleDownResult `json:"lastScaleDown,omitempty"`
}

// past is what was said about a time.
type past struct {
	At time.Time `json:"at"`
	// Recorded is what the series of the policy say, with --prometheus; empty without series.
	Recorded *recorded `json:"recorded,omitempty"`
	// Events until then, the newest first.
	Events []event `json:"events"`
}

type event struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	// Times and Until are of an event that was repeated.
	Times int32      `json:"times,omitempty"`
	Until *time.Time `json:"until,omitempty"`
}

// recorded are the series of a policy at a time.
type recorded struct {
	Modes                       []string `json:"modes,omitempty"`
	ReadyMessages               *int64   `json:"readyMessages,omitempty"`
	PublishedMessagesPerSecond  *float64 `json:"publishedMessagesPerSecond,omitempty"`
	ProcessedMessagesPerSecond  *float64 `json:"processedMessagesPerSecond,omitempty"`
	WaitSeconds                 *float64 `json:"waitSeconds,omitempty"`
	LatencyObjectiveSeconds     *float64 `json:"latencyObjectiveSeconds,omitempty"`
	MessagesPerSecondPerReplica *float64 `json:"messagesPerSecondPerReplica,omitempty"`
	DesiredReplicas             *float64 `json:"desiredReplicas,omitempty"`
	MinReplicas                 *float64 `json:"minReplicas,omitempty"`
	MaxReplicas                 *float64 `json:"maxReplicas,omitempty"`
	SpecReplicas                *float64 `json:"specReplicas,omitempty"`
	RunningReplicas             *float64 `json:"runningReplicas,omitempty"`
	HeldBy                      []string `json:"heldBy,omitempty"`
	LimitedBy                   []string `json:"limitedBy,omitempty"`
	// Attention are conditions as type, status and reason.
	Attention []string `json:"attention,omitempty"`
	isEmpty   bool
}

// newExplanation is what a policy is, without a decision.
func newExplanation(p *v1alpha1.AutoscalingPolicy) explanation {
	return explanation{
		Namespace: p.Namespace, Name: p.Name, Target: p.Status.Target, Mode: p.Spec.Mode,
		MinReplicas: decide.MinReplicas(p.Spec), MaxReplicas: p.Spec.MaxReplicas,
		LatencyObjectiveSeconds: decide.LatencyObjective(p.Spec).Seconds(),
		Generation:              p.Generation, ObservedGeneration: p.Status.ObservedGeneration,
	}
}

// ofNow is the explanation of the last decision. It has fields of the policy: no text is parsed.
func ofNow(p *v1alpha1.AutoscalingPolicy, now time.Time) explanation {
	status, e := p.Status, newExplanation(p)
	if limits := status.Limits; limits != nil {
		e.MinReplicas, e.MaxReplicas, e.ActiveSchedules = limits.MinReplicas, limits.MaxReplicas, limits.Schedules
	}
	e.lastDecision = &lastDecision{
		readAt: now, WrittenBy: writerOf(p), hasStatus: len(status.Conditions) > 0,
		Replicas: replicas{
			Decided: status.DesiredReplicas, Spec: status.SpecReplicas, Running: status.RunningReplicas,
			Start: status.Start, LastScaleDown: status.LastScaleDown,
		},
	}
	if s := status.Signals; s != nil {
		e.Measured = new(measuredOf(p))
		e.Replicas.Consuming = s.Consumers
	}
	if c := status.Capacity; c != nil {
		e.Learned = &learned{
			LearnedAt: c.LearnedAt, MessagesPerSecondPerReplica: *rateOf(&c.MessagesPerSecond),
			UncertaintyPercent: c.UncertaintyPercent, Observations: c.Observations,
			MeasuredBusyPercent: c.MeasuredBusyPercent,
		}
	}
	if d := status.Decision; d != nil {
		e.Decided = &decided{
			DecidedAt: d.Time, Strategy: d.Strategy, Equation: d.Equation, LimitedBy: d.CappedBy,
			PassedGuards: d.PassedGuards, HeldBy: d.Hold,
			Attainment: status.Attainment, ObjectivePercent: p.Spec.ObjectivePercent,
		}
		if f := status.Forecast; f != nil {
			e.Decided.Expected = &expected{
				BeginsAt: f.Time, WithinSeconds: f.Within.Seconds(), PublishedMessagesPerSecond: *rateOf(&f.PublishRate),
				Foreseen: f.Foreseen, Of: f.Of,
			}
		}
		e.Changes = e.changes(cmp.Or(typeFix(p), "add partitions: each keeps one replica busy"))
	}
	e.Attention, e.NotChecked = attention(status.Conditions)
	return e
}

// changes are what would give another number of replicas. Partitions limit it until partitionsFix.
func (e explanation) changes(partitionsFix string) (all []change) {
	add := func(what, how string) { all = append(all, change{what, how}) }
	switch by := e.Decided.LimitedBy; by {
	case decide.CappedByMax, decide.CappedByMin:
		add(by, "without this limit the load alone decides")
	case decide.CappedByPartitions:
		add(by, partitionsFix)
	}
	if hold := e.Decided.HeldBy; hold != nil {
		switch hold.Reason {
		case decide.HoldScaleUpStabilized:
			add("behavior", "a shorter scaleUp.stabilizationWindowSeconds adds replicas earlier")
		case decide.HoldScaleUpLimit, decide.HoldScaleDownLimit:
			add("behavior", "its policies limit how fast replicas change")
		default:
			add("hold", "it ends with its cause: Special cases in docs/algorithm.md has all")
		}
	}
	switch e.Decided.Strategy {
	case v1alpha1.StrategyBacklogPerReplica, v1alpha1.StrategyRatePerReplica, v1alpha1.StrategyUtilization:
		add("strategies", "fewer replicas with a larger number in the parameters of "+string(e.Decided.Strategy))
	default:
		add("objective", "longer than "+short(e.LatencyObjectiveSeconds)+" needs fewer replicas to drain a backlog, "+
			"and shorter needs more: kubectl pap plan "+e.Name+" compares their costs")
		add("capacity", "fewer replicas are enough if each processes more: look at their CPU, and what they wait for")
	}
	return all
}

func writerOf(p *v1alpha1.AutoscalingPolicy) writer {
	status := p.Status
	w := writer{Suspended: status.TakenOver}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	switch mode := p.Spec.Mode; {
	case ready != nil && ready.Reason == v1alpha1.ReasonPaused:
		w.Reason = ready.Message
	case !mode.IsAuto():
		w.Reason = "mode is " + string(mode)
	case status.Actuator != nil:
		w.Actuator, w.Reason = status.Actuator.Type, status.Actuator.Reason
		w.HorizontalPodAutoscaler, w.ScaledObject = status.HorizontalPodAutoscaler, status.ScaledObject
	}
	return w
}

// attention are the conditions that are not as they should be, and the types of those that were not checked. Of
// conditions that say the same, the first is there.
func attention(conditions []metav1.Condition) (all []metav1.Condition, unchecked []string) {
	for _, c := range conditions {
		said := func(other metav1.Condition) bool { return other.Reason == c.Reason && other.Message == c.Message }
		switch {
		case asItShould(c) || slices.ContainsFunc(all, said):
		case c.Status == metav1.ConditionUnknown && c.Reason == v1alpha1.ReasonNotChecked:
			unchecked = append(unchecked, c.Type)
		default:
			all = append(all, c)
		}
	}
	return all, unchecked
}

func asItShould(c metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionScalingLimited, v1alpha1.ConditionStalled:
		return c.Status == metav1.ConditionFalse
	default:
		return c.Status == metav1.ConditionTrue
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

// topRow is what top shows of a policy. Absent is unknown.
type topRow struct {
	measured

	Namespace                   string                 `json:"namespace"`
	Name                        string                 `json:"name"`
	Target                      string                 `json:"target,omitempty"`
	Mode                        v1alpha1.Mode          `json:"mode,omitempty"`
	ObjectiveMet                metav1.ConditionStatus `json:"objectiveMet"`
	LatencyObjectiveSeconds     float64                `json:"latencyObjectiveSeconds"`
	DesiredReplicas             *int32                 `json:"desiredReplicas,omitempty"`
	SpecReplicas                *int32                 `json:"specReplicas,omitempty"`
	RunningReplicas             *int32                 `json:"runningReplicas,omitempty"`
	Hold                        string                 `json:"hold,omitempty"`
	LimitedBy                   string                 `json:"limitedBy,omitempty"`
	Why                         string                 `json:"why,omitempty"`
	Actuator                    v1alpha1.Actuator      `json:"actuator,omitempty"`
	MessagesPerSecondPerReplica *float64               `json:"messagesPerSecondPerReplica,omitempty"`
	// paused is by the mode of the policy or, for all policies, by an annotation.
	paused bool
}

// measured are the signals of a policy.
type measured struct {
	MeasuredAt                 *metav1.Time       `json:"measuredAt,omitempty"`
	ReadyMessages              *int64             `json:"readyMessages,omitempty"`
	DiscountedMessages         *int64             `json:"discountedMessages,omitempty"`
	PublishedMessagesPerSecond *float64           `json:"publishedMessagesPerSecond,omitempty"`
	ProcessedMessagesPerSecond *float64           `json:"processedMessagesPerSecond,omitempty"`
	Consumers                  *int32             `json:"consumers,omitempty"`
	WaitSeconds                *float64           `json:"waitSeconds,omitempty"`
	WaitPercent                *float64           `json:"waitPercent,omitempty"`
	Coverage                   *v1alpha1.Coverage `json:"coverage,omitempty"`
}

// measuredOf are the signals in the status; empty without.
func measuredOf(p *v1alpha1.AutoscalingPolicy) (m measured) {
	s := p.Status.Signals
	if s == nil {
		return m
	}
	m = measured{
		MeasuredAt: &s.MeasuredAt, ReadyMessages: s.ReadyMessages, DiscountedMessages: s.DiscountedMessages,
		PublishedMessagesPerSecond: rateOf(s.PublishRate), ProcessedMessagesPerSecond: rateOf(s.ProcessRate),
		Consumers: s.Consumers, Coverage: s.Coverage,
	}
	if s.Wait != nil {
		m.WaitSeconds = new(s.Wait.Seconds())
		m.WaitPercent = new(math.Round(100 * s.Wait.Seconds() / decide.LatencyObjective(p.Spec).Seconds()))
	}
	return m
}

// rateOf is nil for an unknown rate.
func rateOf(r *v1alpha1.Rate) *float64 {
	if r == nil {
		return nil
	}
	const thousandths = 1000 // which it has; AsApproximateFloat64 is less exact
	return new(float64(r.MilliValue()) / thousandths)
}

// topRows are the rows of the policies, worst first.
func topRows(policies []v1alpha1.AutoscalingPolicy) []topRow {
	rows := make([]topRow, len(policies))
	for i := range policies {
		rows[i] = newTopRow(&policies[i])
	}
	slices.SortFunc(rows, func(a, b topRow) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.percent(), a.percent()),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return rows
}

func newTopRow(p *v1alpha1.AutoscalingPolicy) topRow {
	s := p.Status
	row := topRow{
		measured: measuredOf(p), Namespace: p.Namespace, Name: p.Name, Target: s.Target, Mode: p.Spec.Mode,
		ObjectiveMet:            conditionStatus(p, v1alpha1.ConditionObjectiveMet),
		LatencyObjectiveSeconds: decide.LatencyObjective(p.Spec).Seconds(),
		DesiredReplicas:         s.DesiredReplicas, SpecReplicas: s.SpecReplicas, RunningReplicas: s.RunningReplicas,
		LimitedBy: limitedBy(p), Why: why(p), paused: served.Paused(p),
	}
	if s.Decision != nil && s.Decision.Hold != nil {
		row.Hold = s.Decision.Hold.Reason
	}
	if s.Actuator != nil {
		row.Actuator = s.Actuator.Type
	}
	if s.Capacity != nil {
		row.MessagesPerSecondPerReplica = rateOf(&s.Capacity.MessagesPerSecond)
	}
	return row
}

// The order of policies.
const (
	rankLate = iota
	rankUnknown
	rankMet
	rankPaused
)

func (r topRow) rank() int {
	switch {
	case r.ObjectiveMet == metav1.ConditionFalse || r.WaitPercent != nil && *r.WaitPercent > 100:
		return rankLate
	case r.paused:
		return rankPaused
	case r.ObjectiveMet == metav1.ConditionUnknown || r.WaitPercent == nil:
		return rankUnknown
	default:
		return rankMet
	}
}

func (r topRow) key() client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: r.Name} }

// percent sorts an unknown wait as the longest.
func (r topRow) percent() float64 {
	if r.WaitPercent == nil {
		return math.Inf(1)
	}
	return *r.WaitPercent
}

// conditionStatus is Unknown without the condition.
func conditionStatus(p *v1alpha1.AutoscalingPolicy, name string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(p.Status.Conditions, name); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}

// limitedBy is the reason of condition ScalingLimited while it is True, else the bound that changed the decision.
func limitedBy(p *v1alpha1.AutoscalingPolicy) string {
	limited := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionScalingLimited)
	switch {
	case limited != nil && limited.Status == metav1.ConditionTrue:
		return limited.Reason
	case p.Status.Decision != nil:
		return p.Status.Decision.CappedBy
	default:
		return ""
	}
}

// why is one reason: why the autoscaler does not do its job, why messages are late, why replicas are held, or what
// limits them.
func why(p *v1alpha1.AutoscalingPolicy) string {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	met := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionObjectiveMet)
	decision := p.Status.Decision
	switch {
	case ready == nil:
		return ""
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason
	case met != nil && met.Status == metav1.ConditionFalse && met.Reason != v1alpha1.ReasonReplicasHeld:
		return met.Reason
	case decision != nil && decision.Hold != nil:
		return decision.Hold.Reason
	case limitedBy(p) != "":
		return limitedBy(p)
	case ready.Reason != v1alpha1.ReasonScaling:
		return ready.Reason // ScaledToZero, Recommending or Paused
	default:
		return ""
	}
}

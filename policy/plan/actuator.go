// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const (
	// SlowAfter is two syncs: an autoscaler that takes longer to set a decided number lags.
	SlowAfter = 2 * policy.SyncPeriod
	// directFor is how long Auto writes replicas directly after an autoscaler lagged. It is up to twice as long, by
	// policy: the policies return one by one, as many as kube-controller-manager keeps up with.
	directFor = time.Hour
	// lagCounts is how long a measured lag counts without another one.
	lagCounts = time.Hour
	// ManyLag HorizontalPodAutoscalers that lag within LagsTogether mean that kube-controller-manager is overloaded: Auto
	// then chooses none.
	ManyLag = 10
	// LagsTogether is the time within which they lag.
	LagsTogether = 5 * time.Minute
	// RaiseLimits is the fix.
	RaiseLimits = "raise --kube-api-qps and --concurrent-horizontal-pod-autoscaler-syncs of kube-controller-manager, " +
		"and lower its --horizontal-pod-autoscaler-sync-period if that is above 15s, see " +
		"docs/actuators.md#many-autoscalers"
)

// Choose returns what writes the target's replicas, the reason and the measured lag. Auto chooses no autoscaler that
// lags.
func Choose(s Subject, a Autoscalers, last Unset) v1alpha1.ActuatorStatus {
	if s.Target == nil {
		return v1alpha1.ActuatorStatus{}
	}
	return withLag(s, a, last, chooseAdmitted(s, a))
}

// chooseAdmitted is the choice by the capabilities of the cluster. Auto does not choose KEDA where KEDA would refuse.
func chooseAdmitted(s Subject, a Autoscalers) v1alpha1.ActuatorStatus {
	wanted, without := s.Policy.Spec.Actuator, a.Capabilities
	chosen := without.Choose(wanted, s.Target.Scaling)
	if chosen.Type != v1alpha1.ActuatorKEDA || wanted == v1alpha1.ActuatorKEDA || len(a.OtherScaledObjects) == 0 {
		return chosen
	}
	without.KEDA = false
	chosen = without.Choose(wanted, s.Target.Scaling)
	chosen.Reason += fmt.Sprintf("; KEDA already has %s %s on the same target", KindScaledObject,
		strings.Join(a.OtherScaledObjects, ", "))
	return chosen
}

// Unset is a decided number that the autoscaler could set and has not set, as of the last reconcile.
type Unset struct {
	// Since is when the autoscaler got a number to set, whether or not a later decision replaced it; zero for none.
	Since time.Time
	// Replicas of the target since then.
	Replicas int32
}

// Waited is how long the autoscaler has had a number to set, and whether it has set the decided one since the last
// reconcile; 0 for none. It reads the number from the status, and cannot set what is not written yet. The controller
// itself writes changes from and to zero.
func Waited(s Subject, last Unset) (waited time.Duration, set bool) {
	decided := s.Policy.Status.DesiredReplicas
	if last.Since.IsZero() || last.Replicas == 0 || s.Target == nil || s.Target.Replicas == nil || decided == nil {
		return 0, false
	}
	current := *s.Target.Replicas
	set = current == *decided && current != last.Replicas
	if current == 0 || !set && (current != last.Replicas || current == *decided) {
		return 0, false
	}
	return max(0, s.Now.Sub(last.Since)), set
}

// withLag is the choice with the measured lag. Where Auto chose a HorizontalPodAutoscaler that lags, or many lag, it is
// Direct for some time: status.actuator remembers it.
func withLag(s Subject, a Autoscalers, unset Unset, chosen v1alpha1.ActuatorStatus) v1alpha1.ActuatorStatus {
	var last v1alpha1.ActuatorStatus
	if s.Policy.Status.Actuator != nil {
		last = *s.Policy.Status.Actuator
	}
	waited, set := Waited(s, unset)
	movable := chosen.Type == v1alpha1.ActuatorHPA && s.Policy.Spec.Actuator != v1alpha1.ActuatorHPA
	if movable && last.DirectUntil != nil && s.Now.Before(last.DirectUntil.Time) {
		return last
	}
	if movable && !set {
		if lag, why := lagging(s, a, waited, last.Lag); why != "" {
			return movedToDirect(s, lag, why)
		}
	}
	switch {
	case chosen.Type == v1alpha1.ActuatorDirect:
		return chosen
	case set:
		chosen.Lag, chosen.LagMeasuredAt = lagAfter(waited, last.Lag), new(metav1.NewTime(s.Now.Truncate(time.Second)))
	case last.Type == chosen.Type && last.LagMeasuredAt != nil && s.Now.Sub(last.LagMeasuredAt.Time) < lagCounts:
		chosen.Lag, chosen.LagMeasuredAt = last.Lag, last.LagMeasuredAt
	}
	return chosen
}

// lagging is why Auto leaves the HorizontalPodAutoscaler, empty to keep it, and its own lag; nil if it shows none.
func lagging(s Subject, a Autoscalers, waited time.Duration, last *metav1.Duration) (*metav1.Duration, string) {
	since := unread(s, a)
	switch {
	case lags(waited, last):
		lag := lagAfter(waited, nil)
		return lag, fmt.Sprintf("did not set the decided replicas for %s", lag.Duration)
	case lags(since, last):
		lag := lagAfter(since, nil)
		return lag, fmt.Sprintf("was not read for %s after its creation", lag.Duration)
	case a.ManyLag:
		return nil, fmt.Sprintf("would lag as %d others did within %s", ManyLag, LagsTogether)
	default:
		return nil, ""
	}
}

// unread is how long the HorizontalPodAutoscaler has existed without a condition: its controller writes the first ones
// when it first reads it, whatever the replicas are. 0 with conditions, and without a HorizontalPodAutoscaler.
func unread(s Subject, a Autoscalers) time.Duration {
	hpa := a.Autoscaler
	if hpa == nil || len(hpa.Status.Conditions) > 0 || hpa.CreationTimestamp.IsZero() ||
		!metav1.IsControlledBy(hpa, s.Policy) {
		return 0
	}
	return s.Now.Sub(hpa.CreationTimestamp.Time)
}

// lags reports whether the autoscaler lags: once may be a change of the leader of kube-controller-manager.
func lags(waited time.Duration, last *metav1.Duration) bool {
	return waited >= 2*SlowAfter || waited > SlowAfter && last != nil && last.Duration > policy.SyncPeriod
}

// lagAfter is the time that the autoscaler took, or half of the last lag if that is longer: some decisions come just
// before a sync.
func lagAfter(took time.Duration, last *metav1.Duration) *metav1.Duration {
	if last != nil {
		took = max(took, last.Duration/2)
	}
	return &metav1.Duration{Duration: min(took, policy.LongestSync).Round(time.Second)}
}

// movedToDirect is the choice of Auto in place of a HorizontalPodAutoscaler.
func movedToDirect(s Subject, lag *metav1.Duration, why string) v1alpha1.ActuatorStatus {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(s.Policy.UID)) // a hash.Hash never fails
	more := time.Duration(hash.Sum32()) * time.Second % directFor
	until := metav1.NewTime(s.Now.Add(directFor + more).Truncate(time.Second))
	return v1alpha1.ActuatorStatus{
		Type: v1alpha1.ActuatorDirect, Lag: lag, DirectUntil: &until, Reason: fmt.Sprintf(
			"HorizontalPodAutoscaler %s %s, so Auto chooses Direct until %s: %s",
			AutoscalerName(s.Policy.Name), why, until.UTC().Format(time.RFC3339), RaiseLimits),
	}
}

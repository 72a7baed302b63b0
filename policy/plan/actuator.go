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

// Capabilities are the probed features of a cluster. The zero value is a cluster that is not probed yet.
type Capabilities struct {
	// MetricsAPIHolder serves custom.metrics.k8s.io instead of the adapter, such as "Service
	// monitoring/prometheus-adapter"; empty if the adapter does, or if that is unknown.
	MetricsAPIHolder string
	// NoMetricsAPI is true if no APIService serves it.
	NoMetricsAPI bool
	// KEDA is true if its kinds are installed.
	KEDA bool
	// Scaler is how KEDA reaches the external scaler; zero if the adapter's flags do not set it.
	Scaler Scaler
}

// Choose returns what writes the replicas, and the reason. A named actuator is always chosen; the API server refuses
// HPA and KEDA for targets without a scale subresource.
func (c Capabilities) Choose(wanted v1alpha1.Actuator, scaling Scaling) v1alpha1.ActuatorStatus {
	switch {
	case wanted == v1alpha1.ActuatorHPA:
		return v1alpha1.ActuatorStatus{Type: wanted, Reason: "it is set in spec.actuator" + c.metricsWarning()}
	case wanted == v1alpha1.ActuatorDirect, wanted == v1alpha1.ActuatorKEDA:
		return v1alpha1.ActuatorStatus{Type: wanted, Reason: "it is set in spec.actuator"}
	case scaling == ByMesh:
		return v1alpha1.ActuatorStatus{
			Type: v1alpha1.ActuatorDirect, Reason: "a component of a FunctionMesh has no scale subresource",
		}
	case scaling == ByWorker:
		return v1alpha1.ActuatorStatus{
			Type: v1alpha1.ActuatorDirect, Reason: "a function of the function worker has no scale subresource",
		}
	case c.noMetricsReason() != "":
		return c.withoutMetricsAPI()
	default:
		return v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA, Reason: "custom.metrics.k8s.io is served by the adapter"}
	}
}

// noMetricsReason is the reason that the policy's HorizontalPodAutoscaler gets no metric; empty if it gets one.
func (c Capabilities) noMetricsReason() string {
	switch {
	case c.MetricsAPIHolder != "":
		return "custom.metrics.k8s.io is served by " + c.MetricsAPIHolder +
			", so no HorizontalPodAutoscaler can read metrics from the adapter"
	case c.NoMetricsAPI:
		return "no APIService serves custom.metrics.k8s.io, so no HorizontalPodAutoscaler can read metrics from the adapter"
	default:
		return ""
	}
}

// withoutMetricsAPI is the choice if no HorizontalPodAutoscaler reaches the adapter: KEDA reads from the external
// scaler.
func (c Capabilities) withoutMetricsAPI() v1alpha1.ActuatorStatus {
	direct := v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: c.noMetricsReason()}
	switch {
	case c.KEDA && c.Scaler.Address != "":
		return v1alpha1.ActuatorStatus{
			Type:   v1alpha1.ActuatorKEDA,
			Reason: c.noMetricsReason() + "; KEDA is installed, and reads decisions from " + c.Scaler.Address,
		}
	case c.NoMetricsAPI:
		direct.Reason += ": apply its APIService"
	case c.KEDA:
		direct.Reason += "; to use KEDA, which is installed, set --" + FlagScalerAddress +
			" of the adapter (value scaler.enabled of the chart)"
	}
	return direct
}

// FlagScalerAddress is the flag of the adapter with the address of the external scaler.
const FlagScalerAddress = "keda-scaler-address"

// Choose returns what writes the target's replicas, the reason and the measured lag. Auto chooses no autoscaler that
// lags.
func (o Observed) Choose() v1alpha1.ActuatorStatus {
	if o.Target == nil {
		return v1alpha1.ActuatorStatus{}
	}
	return withLag(o, chooseAdmitted(o))
}

// chooseAdmitted is the choice by the capabilities of the cluster. Auto does not choose KEDA where KEDA would refuse.
func chooseAdmitted(o Observed) v1alpha1.ActuatorStatus {
	wanted, without := o.Policy.Spec.Actuator, o.Capabilities
	chosen := without.Choose(wanted, o.Target.Scaling)
	if chosen.Type != v1alpha1.ActuatorKEDA || wanted == v1alpha1.ActuatorKEDA || len(o.OtherScaledObjects) == 0 {
		return chosen
	}
	without.KEDA = false
	chosen = without.Choose(wanted, o.Target.Scaling)
	chosen.Reason += fmt.Sprintf("; KEDA already has %s %s on the same target", kindScaledObject,
		strings.Join(o.OtherScaledObjects, ", "))
	return chosen
}

// metricsWarning warns that a named actuator HPA gets no metric.
func (c Capabilities) metricsWarning() string {
	switch {
	case c.MetricsAPIHolder != "":
		return ", although custom.metrics.k8s.io is served by " + c.MetricsAPIHolder + " and not by the adapter: use Direct"
	case c.NoMetricsAPI:
		return ", although no APIService serves custom.metrics.k8s.io: apply the adapter's APIService, or use Direct"
	default:
		return ""
	}
}

const (
	// SlowAfter is two syncs: an autoscaler that takes longer to set a decided number lags.
	SlowAfter = 2 * policy.SyncPeriod
	// directFor is how long Auto writes replicas directly after an autoscaler lagged. It is up to twice as long, by
	// policy: the policies return one by one, as many as kube-controller-manager keeps up with.
	directFor = time.Hour
	// lagCounts is how long a measured lag counts without another one.
	lagCounts = time.Hour
	// RaiseLimits is the fix.
	RaiseLimits = "raise --kube-api-qps and --concurrent-horizontal-pod-autoscaler-syncs of kube-controller-manager, " +
		"and lower its --horizontal-pod-autoscaler-sync-period if that is above 15s, see " +
		"docs/actuators.md#many-autoscalers"
)

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
func Waited(o Observed) (waited time.Duration, set bool) {
	since, decided := o.Unset, o.Policy.Status.DesiredReplicas
	if since.Since.IsZero() || since.Replicas == 0 || o.Target == nil || o.Target.Replicas == nil || decided == nil {
		return 0, false
	}
	current := *o.Target.Replicas
	set = current == *decided && current != since.Replicas
	if current == 0 || !set && (current != since.Replicas || current == *decided) {
		return 0, false
	}
	return max(0, o.Now.Sub(since.Since)), set
}

// withLag is the choice with the measured lag. Where Auto chose a HorizontalPodAutoscaler that lags, it is Direct for
// some time: status.actuator remembers it.
func withLag(o Observed, chosen v1alpha1.ActuatorStatus) v1alpha1.ActuatorStatus {
	var last v1alpha1.ActuatorStatus
	if o.Policy.Status.Actuator != nil {
		last = *o.Policy.Status.Actuator
	}
	waited, set := Waited(o)
	movable := chosen.Type == v1alpha1.ActuatorHPA && o.Policy.Spec.Actuator != v1alpha1.ActuatorHPA
	switch {
	case movable && last.DirectUntil != nil && o.Now.Before(last.DirectUntil.Time):
		return last
	case movable && !set && lags(waited, last.Lag):
		return movedToDirect(o, waited)
	case chosen.Type == v1alpha1.ActuatorDirect:
		return chosen
	case set:
		chosen.Lag, chosen.LagMeasuredAt = lagAfter(waited, last.Lag), new(metav1.NewTime(o.Now.Truncate(time.Second)))
	case last.Type == chosen.Type && last.LagMeasuredAt != nil && o.Now.Sub(last.LagMeasuredAt.Time) < lagCounts:
		chosen.Lag, chosen.LagMeasuredAt = last.Lag, last.LagMeasuredAt
	}
	return chosen
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

// movedToDirect is the choice of Auto after its HorizontalPodAutoscaler set nothing for too long.
func movedToDirect(o Observed, waited time.Duration) v1alpha1.ActuatorStatus {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(o.Policy.UID)) // a hash.Hash never fails
	more := time.Duration(hash.Sum32()) * time.Second % directFor
	until, lag := metav1.NewTime(o.Now.Add(directFor+more).Truncate(time.Second)), lagAfter(waited, nil)
	return v1alpha1.ActuatorStatus{
		Type: v1alpha1.ActuatorDirect, Lag: lag, DirectUntil: &until, Reason: fmt.Sprintf(
			"HorizontalPodAutoscaler %s did not set the decided replicas for %s, so Auto chooses Direct until %s: %s",
			AutoscalerName(o.Policy.Name), lag.Duration, until.UTC().Format(time.RFC3339), RaiseLimits),
	}
}

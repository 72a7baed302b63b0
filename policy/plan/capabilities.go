// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Capabilities are what a cluster can do, as it was probed. The zero value is a cluster of which nothing is known yet.
type Capabilities struct {
	// MetricsAPIHolder is who serves custom.metrics.k8s.io instead of us, such as "Service monitoring/prometheus-adapter";
	// empty when we do, or when that is not known.
	MetricsAPIHolder string
	// NoMetricsAPI says that no APIService serves it.
	NoMetricsAPI bool
	// ScaleToZero says that a HorizontalPodAutoscaler takes minReplicas 0 (feature gate HPAScaleToZero).
	ScaleToZero bool
	// KEDA says that its kinds are installed.
	KEDA bool
	// Scaler is how KEDA reaches ours; zero when the adapter was not told.
	Scaler Scaler
}

// Choose says who writes the number of replicas, and why. A named actuator is taken at its word; the API server refuses
// HPA and KEDA for what has no scale subresource.
func (a Capabilities) Choose(wanted v1alpha1.Actuator, scaling Scaling) v1alpha1.ActuatorStatus {
	switch {
	case wanted == v1alpha1.ActuatorHPA:
		return v1alpha1.ActuatorStatus{Type: wanted, Reason: "spec.actuator says so" + a.butMetrics()}
	case wanted == v1alpha1.ActuatorDirect, wanted == v1alpha1.ActuatorKEDA:
		return v1alpha1.ActuatorStatus{Type: wanted, Reason: "spec.actuator says so"}
	case scaling == ByMesh:
		return v1alpha1.ActuatorStatus{
			Type: v1alpha1.ActuatorDirect, Reason: "a component of a FunctionMesh has no scale subresource",
		}
	case scaling == ByWorker:
		return v1alpha1.ActuatorStatus{
			Type: v1alpha1.ActuatorDirect, Reason: "what the function worker runs has no scale subresource",
		}
	case a.notAsked() != "":
		return a.withoutMetrics()
	default:
		return v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA, Reason: "custom.metrics.k8s.io is served by the adapter"}
	}
}

// notAsked says why no HorizontalPodAutoscaler of ours can work; empty when it can.
func (a Capabilities) notAsked() string {
	switch {
	case a.MetricsAPIHolder != "":
		return "custom.metrics.k8s.io is served by " + a.MetricsAPIHolder +
			", so no HorizontalPodAutoscaler can ask the adapter"
	case a.NoMetricsAPI:
		return "no APIService serves custom.metrics.k8s.io, so no HorizontalPodAutoscaler can ask the adapter"
	default:
		return ""
	}
}

// withoutMetrics is the choice where the adapter is not asked: KEDA's HorizontalPodAutoscaler asks KEDA, and KEDA our
// scaler.
func (a Capabilities) withoutMetrics() v1alpha1.ActuatorStatus {
	direct := v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: a.notAsked()}
	switch {
	case a.KEDA && a.Scaler.Address != "":
		return v1alpha1.ActuatorStatus{
			Type:   v1alpha1.ActuatorKEDA,
			Reason: a.notAsked() + "; KEDA is installed, and asks " + a.Scaler.Address,
		}
	case a.NoMetricsAPI:
		direct.Reason += ": apply its APIService"
	case a.KEDA:
		direct.Reason += "; KEDA is installed, and works with --" + FlagScalerAddress + " of the adapter"
	}
	return direct
}

// FlagScalerAddress is the flag of the adapter that says where KEDA reaches the scaler.
const FlagScalerAddress = "keda-scaler-address"

// Choose says who writes the number of replicas of the target, and why: Auto does without KEDA where that would refuse.
func (o Observed) Choose() v1alpha1.ActuatorStatus {
	if o.Target == nil {
		return v1alpha1.ActuatorStatus{}
	}
	wanted, without := o.Policy.Spec.Actuator, o.Capabilities
	chosen := without.Choose(wanted, o.Target.Scaling)
	if chosen.Type != v1alpha1.ActuatorKEDA || wanted == v1alpha1.ActuatorKEDA || len(o.OtherScaledObjects) == 0 {
		return chosen
	}
	without.KEDA = false
	chosen = without.Choose(wanted, o.Target.Scaling)
	chosen.Reason += fmt.Sprintf("; KEDA has %s %s on the same target already", kindScaledObject,
		strings.Join(o.OtherScaledObjects, ", "))
	return chosen
}

// butMetrics warns of a choice that cannot work.
func (a Capabilities) butMetrics() string {
	switch {
	case a.MetricsAPIHolder != "":
		return ", although custom.metrics.k8s.io is served by " + a.MetricsAPIHolder + " and not by the adapter: use Direct"
	case a.NoMetricsAPI:
		return ", although no APIService serves custom.metrics.k8s.io: apply the adapter's APIService, or use Direct"
	default:
		return ""
	}
}

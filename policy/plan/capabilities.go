// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"

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

// FlagScalerAddress is the flag of the adapter with the address of the external scaler.
const FlagScalerAddress = "keda-scaler-address"

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

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
// HPA and KEDA for targets without a scale subresource. If no HorizontalPodAutoscaler reaches the adapter, KEDA reads
// from the external scaler.
func (c Capabilities) Choose(wanted v1alpha1.Actuator, scaling Scaling) v1alpha1.ActuatorStatus {
	chosen := func(by v1alpha1.Actuator, reason string) v1alpha1.ActuatorStatus {
		return v1alpha1.ActuatorStatus{Type: by, Reason: reason}
	}
	const hpa, direct, named = v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect, "it is set in spec.actuator"
	switch why := c.noMetricsReason(); {
	case wanted == hpa && c.NoMetricsAPI:
		return chosen(wanted, named+", although "+why+fixMetricsAPI+", or use Direct")
	case wanted == hpa && why != "":
		return chosen(wanted, named+", although "+why+": use Direct")
	case wanted == hpa, wanted == direct, wanted == v1alpha1.ActuatorKEDA:
		return chosen(wanted, named)
	case scaling == ByMesh:
		return chosen(direct, "a component of a FunctionMesh has no scale subresource")
	case scaling == ByWorker:
		return chosen(direct, "a function of the function worker has no scale subresource")
	case why == "":
		return chosen(hpa, "custom.metrics.k8s.io is served by the adapter")
	case c.KEDA && c.Scaler.Address != "":
		return chosen(v1alpha1.ActuatorKEDA, why+"; KEDA is installed, and reads decisions from "+c.Scaler.Address)
	case c.NoMetricsAPI:
		return chosen(direct, why+fixMetricsAPI)
	case c.KEDA:
		return chosen(direct, why+"; to use KEDA, which is installed, set --"+FlagScalerAddress+
			" of the adapter (value scaler.enabled of the chart)")
	default:
		return chosen(direct, why)
	}
}

// fixMetricsAPI does not say to apply one: it would have no authority, and the API server could not verify the adapter.
const fixMetricsAPI = ": see the log of the adapter, which needs deploy/rbac/certificate.yaml to write its " +
	"APIService, and --tls-ca-file with --serving-certificate=Files (the chart sets it)"

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

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestTheActuatorFollowsTheCapabilities(t *testing.T) {
	const auto, hpa, direct = v1alpha1.ActuatorAuto, v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect
	theirs := plan.Capabilities{MetricsAPIHolder: "Service monitoring/prometheus-adapter"}
	withKEDA := theirs
	withKEDA.KEDA = true
	tests := map[string]struct {
		cluster plan.Capabilities
		wanted  v1alpha1.Actuator
		scaling plan.Scaling
		want    v1alpha1.Actuator
		reason  string
	}{
		"the HPA before probing": {
			plan.Capabilities{},
			auto, plan.BySubresource, hpa,
			"custom.metrics.k8s.io is served by the adapter",
		},
		"KEDA beside us is no reason": {
			plan.Capabilities{KEDA: true, Scaler: testScaler()},
			auto, plan.BySubresource, hpa,
			"custom.metrics.k8s.io is served by the adapter",
		},
		"no value is Auto": {
			plan.Capabilities{},
			"", plan.BySubresource, hpa,
			"custom.metrics.k8s.io is served by the adapter",
		},
		"Direct when another adapter serves the API": {
			theirs, auto, plan.BySubresource, direct,
			"custom.metrics.k8s.io is served by Service monitoring/prometheus-adapter, so no HorizontalPodAutoscaler can read " +
				"metrics from the adapter",
		},
		"Direct, and a word about KEDA": {
			withKEDA, auto, plan.BySubresource, direct,
			"custom.metrics.k8s.io is served by Service monitoring/prometheus-adapter, so no HorizontalPodAutoscaler can read " +
				"metrics from the adapter; to use KEDA, which is installed, set --keda-scaler-address of the adapter (value " +
				"scaler.enabled of the chart)",
		},
		"Direct when no APIService serves the API": {
			plan.Capabilities{NoMetricsAPI: true},
			auto, plan.BySubresource, direct,
			"no APIService serves custom.metrics.k8s.io, so no HorizontalPodAutoscaler can read metrics from the adapter: see the " +
				"log of the adapter, which needs deploy/rbac/certificate.yaml to write its APIService, and " +
				"--tls-ca-file with --serving-certificate=Files (the chart sets it)",
		},
		"Direct for functions of a worker": {
			plan.Capabilities{NoMetricsAPI: true, KEDA: true, Scaler: testScaler()},
			auto, plan.ByWorker, direct, "a function of the function worker has no scale subresource",
		},
		"Direct for a component of a FunctionMesh": {
			withKEDA, auto, plan.ByMesh, direct, "a component of a FunctionMesh has no scale subresource",
		},
		"a named one, whatever the cluster": {
			theirs, hpa, plan.BySubresource, hpa,
			"it is set in spec.actuator, although custom.metrics.k8s.io is served by Service monitoring/prometheus-adapter, so no " +
				"HorizontalPodAutoscaler can read metrics from the adapter: use Direct",
		},
		"a named one without a metrics API": {
			plan.Capabilities{NoMetricsAPI: true},
			hpa, plan.BySubresource, hpa,
			"it is set in spec.actuator, although no APIService serves custom.metrics.k8s.io, so no HorizontalPodAutoscaler " +
				"can read metrics from the adapter: see the log of the adapter, which needs deploy/rbac/certificate.yaml to write " +
				"its APIService, and --tls-ca-file with --serving-certificate=Files (the chart sets it), or use Direct",
		},
		"a named HPA that is right": {plan.Capabilities{}, hpa, plan.BySubresource, hpa, "it is set in spec.actuator"},
		"a named one that is right": {theirs, direct, plan.BySubresource, direct, "it is set in spec.actuator"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, v1alpha1.ActuatorStatus{Type: tt.want, Reason: tt.reason}, tt.cluster.Choose(tt.wanted, tt.scaling))
		})
	}
}

func TestNothingIsSuspendedForAnAutoscalerWithoutMetrics(t *testing.T) {
	for name, test := range map[string]struct {
		actuator v1alpha1.Actuator
		want     string
	}{
		"an HPA that the spec names": {
			v1alpha1.ActuatorHPA,
			"; the controller does not take it over for actuator HPA: it is set in spec.actuator, although " +
				"custom.metrics.k8s.io is served by Service monitoring/other, so no HorizontalPodAutoscaler can read metrics " +
				"from the adapter: use Direct",
		},
		"Auto chooses another": {v1alpha1.ActuatorAuto, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := contested(conflict("HorizontalPodAutoscaler", "theirs", ""))
			w.Policy.Spec.Actuator, w.Capabilities.MetricsAPIHolder = test.actuator, "Service monitoring/other"
			w.Actuator, w.Violation = plan.Choose(w.Subject, w.Autoscalers, w.Unset), plan.Check(w.Subject, w.Autoscalers)
			step, problem := plan.NextSuspension(w)
			require.Equal(t, test.want == "", step != nil)
			if test.want != "" {
				require.Equal(t, v1alpha1.ReasonConflictingAutoscaler, problem.Reason)
				require.Contains(t, problem.Message, test.want)
			}
		})
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"math"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// Names of the metrics. They are constant and safe in a path: KEDA puts them into the HorizontalPodAutoscaler with the
// prefix s<index of the trigger>-, and keeps them until the ScaledObject changes.
const (
	MetricDesiredReplicas = "pulsar-desired-replicas"
	MetricReadyMessages   = "pulsar-backlog-ready-messages"
	MetricPublishRate     = "pulsar-publish-rate"
	MetricBusyPercent     = "pulsar-busy-percent"
)

// Spec is a metric and its target for one replica: KEDA's HorizontalPodAutoscaler divides the value by it.
type Spec struct {
	Metric string
	// Target in replicas, messages, messages/s or percent; above 0.
	Target float64
}

// metricOf names the metric of a trigger. It depends on the metadata alone.
func metricOf(t Trigger) string {
	switch t.Strategy {
	case v1alpha1.StrategyBacklogPerReplica:
		return MetricReadyMessages
	case v1alpha1.StrategyRatePerReplica:
		return MetricPublishRate
	case v1alpha1.StrategyUtilization:
		return MetricBusyPercent
	default:
		return MetricDesiredReplicas
	}
}

// followsPolicy reports whether replicas are the decision of a policy.
func (t Trigger) followsPolicy() bool { return t.Subject.Policy != "" && t.Strategy == "" }

func (t Trigger) borrowsThreshold() bool { return t.Subject.Policy != "" && t.Strategy != "" }

// specOf returns the divisor for KEDA. The policy is required if it has the threshold, and nil otherwise.
func specOf(t Trigger, p *v1alpha1.AutoscalingPolicy) (Spec, error) {
	spec := Spec{Metric: metricOf(t), Target: 1}
	switch {
	case spec.Metric == MetricDesiredReplicas:
		return spec, nil
	case !t.borrowsThreshold():
		spec.Target = t.Threshold
		return spec, nil
	}
	for _, strategy := range p.Spec.Strategies {
		if strategy.Type == t.Strategy {
			spec.Target = thresholdOf(strategy)
			return spec, nil
		}
	}
	return Spec{}, response.Errorf(response.Unsupported,
		"AutoscalingPolicy %q has no strategy %s: add it to its spec.strategies, or remove strategy from the trigger to "+
			"follow its decision",
		t.Subject.Policy, t.Strategy)
}

func thresholdOf(strategy v1alpha1.Strategy) float64 {
	switch {
	case strategy.BacklogPerReplica != nil:
		return float64(strategy.BacklogPerReplica.Messages)
	case strategy.RatePerReplica != nil:
		return strategy.RatePerReplica.MessagesPerSecond.AsApproximateFloat64()
	default:
		return float64(strategy.Utilization.TargetPercent)
	}
}

// response is the spec in KEDA's format: the float since KEDA 2.17, the whole number before. A target below 1 would be
// 0 as a whole number, which the API server refuses.
func (s Spec) response() *pb.GetMetricSpecResponse {
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{{
		MetricName: s.Metric, TargetSize: int64(max(1, math.Round(s.Target))), TargetSizeFloat: s.Target,
	}}}
}

// response is the value in KEDA's format. As a whole number it is rounded up: a backlog is never served as 0.
func (s Sample) response() *pb.GetMetricsResponse {
	return &pb.GetMetricsResponse{MetricValues: []*pb.MetricValue{{
		MetricName: s.Spec.Metric, MetricValue: int64(math.Ceil(s.Value)), MetricValueFloat: s.Value,
	}}}
}

// Trigger is the decoded metadata of a trigger of type external or external-push. It is comparable: equal triggers of
// one ScaledObject have equal results.
type Trigger struct {
	// Object is the ScaledObject.
	Object types.NamespacedName
	// Subject is what is measured, or the policy.
	Subject Subject
	// Strategy is empty for the decision of a policy. For a policy it is one of its spec.strategies other than Capacity,
	// with its threshold.
	Strategy v1alpha1.StrategyType
	// Threshold for one replica: messages (BacklogPerReplica), messages/s (RatePerReplica) or percent (Utilization); 0 if
	// the policy has it.
	Threshold float64
	// ActivationMessages is how many ready messages do not activate the trigger; for strategies with a threshold.
	ActivationMessages int64
}

// Subject is what is measured; exactly one of Policy, Target, Component and Topics is set. It is comparable.
type Subject struct {
	// Namespace of the ScaledObject, in which Policy and Target are.
	Namespace string
	// Policy is the name of an AutoscalingPolicy.
	Policy string
	// Target is an object that runs instances.
	Target Target
	// Component is a function of a function worker, without Cluster and WorkerURL: those are of Connection.
	Component function.Component
	// Topics are complete names (persistent://tenant/namespace/topic), sorted and separated by commas; Subscription is the
	// subscription on them.
	Topics, Subscription string
	// Connection names the scaler's connection to Pulsar for Component and Topics; empty for its own.
	Connection string
}

// Target names an object of Kubernetes: kind Function, Sink, Source or StatefulSet.
type Target struct{ Kind, Name string }

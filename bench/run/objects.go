// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// The labels of all objects of a run, and the annotations of its namespace.
const (
	labelManagedBy   = "app.kubernetes.io/managed-by"
	managedBy        = "kubectl-pap"
	labelRun         = "bench.pulsar-autoscaler.io/run"
	annotationAdmin  = "bench.pulsar-autoscaler.io/pulsar-admin-url"
	annotationTopics = "bench.pulsar-autoscaler.io/topics"
)

// entrant is a contender with the names of its objects.
type entrant struct {
	scenario.Contender

	run, namespace string
	scenario       scenario.Scenario
	// stage of the pipeline, from 0 on.
	stage int
}

// stages are the Functions of a contender, one after the other.
func (e entrant) stages() (all []entrant) {
	for e.stage = range e.scenario.Function.Stages {
		all = append(all, e)
	}
	return all
}

// suffix tells the later stages from the first.
func (e entrant) suffix() string {
	if e.stage == 0 {
		return ""
	}
	return "-" + strconv.Itoa(e.stage+1)
}

// function is the name of the Function, of its autoscaler and of its subscription.
func (e entrant) function() string { return e.Name + "-" + e.run + e.suffix() }

func (e entrant) topic(end string) string {
	return fmt.Sprintf("persistent://%s/pap-bench-%s-%s-%s", e.scenario.Pulsar.Namespace, e.run, e.Name, end)
}

func (e entrant) input() string {
	if e.stage == 0 {
		return e.topic("in")
	}
	e.stage--
	return e.output()
}

func (e entrant) output() string { return e.topic("out" + e.suffix()) }

// topics are the inputs of all stages, and the output of the last.
func (e entrant) topics() (all []string) {
	stages := e.stages()
	for _, stage := range stages {
		all = append(all, stage.input())
	}
	return append(all, stages[len(stages)-1].output())
}

func (e entrant) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: e.namespace, Name: e.function(), Labels: map[string]string{labelManagedBy: managedBy, labelRun: e.run},
	}
}

func (e entrant) unstructured(kind schema.GroupVersionKind, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(e.namespace)
	object.SetName(e.function())
	object.SetLabels(e.meta().Labels)
	return object
}

// replicas is the initial number of replicas: Function Mesh rejects 0.
func (e entrant) replicas() int32 {
	if e.Fixed != nil {
		return e.Fixed.Replicas
	}
	return max(1, *e.scenario.MinReplicas)
}

// connection returns the ConfigMap that Function Mesh reads Pulsar's URLs from.
func (e entrant) connection() *corev1.ConfigMap {
	reached := e.scenario.Pulsar.Reached()
	return &corev1.ConfigMap{ObjectMeta: e.meta(), Data: map[string]string{
		"webServiceURL": reached.AdminURL, "brokerServiceURL": reached.ServiceURL,
	}}
}

// isDeployment reports whether replicas run without Function Mesh.
func (e entrant) isDeployment() bool { return e.scenario.Function.Kind == scenario.KindDeployment }

// kind is the kind of the scaled object.
func (e entrant) kind() schema.GroupVersionKind {
	if e.isDeployment() {
		return deployments()
	}
	return functions()
}

// workload returns the scaled object: the example Function, or a Deployment that does the same.
func (e entrant) workload() *unstructured.Unstructured {
	if e.isDeployment() {
		return e.deployment()
	}
	return e.functionObject()
}

// functionObject returns the example Function, which copies its input to its output.
func (e entrant) functionObject() *unstructured.Unstructured {
	f := e.scenario.Function
	size := map[string]any{"cpu": f.CPU, "memory": f.Memory}
	pulsar := map[string]any{"pulsarConfig": e.function()}
	if e.scenario.Pulsar.AuthSecret != "" {
		pulsar["authSecret"] = copiedSecret
	}
	const bytes = "[B"
	config := map[string]any{"serviceTimeMillis": f.ServiceTime.Milliseconds()}
	if start := e.scenario.Local.StartTime.Milliseconds(); start > 0 {
		config["startDelayMillis"] = start
	}
	input := map[string]any{"typeClassName": bytes, "topics": []any{e.input()}}
	if f.ReceiverQueueSize > 0 {
		input["sourceSpecs"] = map[string]any{
			e.input(): map[string]any{"receiverQueueSize": int64(f.ReceiverQueueSize)},
		}
	}
	return e.unstructured(functions(), map[string]any{
		"className": f.ClassName, "image": f.Image,
		"java":             map[string]any{"jar": f.Jar},
		"input":            input,
		"output":           map[string]any{"typeClassName": bytes, "topic": e.output()},
		"pulsar":           pulsar,
		"subscriptionName": e.function(),
		"resources":        map[string]any{"requests": size, "limits": size},
		"replicas":         int64(e.replicas()), "minReplicas": int64(1),
		"autoAck": true, "forwardSourceMessageProperty": true,
		"funcConfig": config,
	})
}

// autoscaler returns the object that a user of the contender creates; nil for fixed replicas.
func (e entrant) autoscaler() client.Object {
	switch {
	case e.Policy != nil:
		return e.policy()
	case e.KEDAPulsar != nil:
		return e.scaledObject()
	case e.CPU != nil:
		return &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: e.meta(),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: e.kind().GroupVersion().String(), Kind: e.kind().Kind, Name: e.function(),
				},
				MinReplicas: e.scenario.MinReplicas, MaxReplicas: e.scenario.MaxReplicas,
				Metrics: []autoscalingv2.MetricSpec{{
					Type: autoscalingv2.ResourceMetricSourceType,
					Resource: &autoscalingv2.ResourceMetricSource{
						Name: corev1.ResourceCPU,
						Target: autoscalingv2.MetricTarget{
							Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &e.CPU.Percentage,
						},
					},
				}},
			},
		}
	default:
		return nil
	}
}

// Scaling is what the policy of a contender says about its replicas.
func Scaling(s scenario.Scenario, p scenario.Policy) v1alpha1.ScalingSpec {
	cooldown := int32(s.CooldownPeriod.Seconds())
	scaling := v1alpha1.ScalingSpec{
		MinReplicas: s.MinReplicas, MaxReplicas: s.MaxReplicas, LatencyObjective: s.LatencyObjective,
		Actuator: v1alpha1.Actuator(p.Actuator),
		Behavior: &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: &cooldown}},
	}
	if p.Forecast != "" {
		scaling.Forecast = &v1alpha1.Forecast{Mode: v1alpha1.ForecastMode(p.Forecast)}
	}
	return scaling
}

// policy has the subscription of a Deployment. That of a Function is in the Function.
func (e entrant) policy() *v1alpha1.AutoscalingPolicy {
	p := &v1alpha1.AutoscalingPolicy{ObjectMeta: e.meta(), Spec: v1alpha1.AutoscalingPolicySpec{
		ScaleTargetRef: v1alpha1.ScaleTargetRef{
			APIVersion: e.kind().GroupVersion().String(), Kind: e.kind().Kind, Name: e.function(),
		},
		ScalingSpec: Scaling(e.scenario, *e.Policy),
	}}
	if e.isDeployment() {
		p.Spec.Subscription = &v1alpha1.Subscription{
			Topics: []v1alpha1.TopicName{v1alpha1.TopicName(e.input())}, Name: e.function(),
			Type: v1alpha1.SubscriptionShared, ConsumersPerReplica: 1,
		}
		p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: e.scenario.Pulsar.Reached().AdminURL}
		if e.scenario.Pulsar.AuthSecret != "" {
			p.Spec.Pulsar.AuthSecret = copiedSecret
		}
	}
	return p
}

// scaledObject has KEDA's defaults except for the bounds, the threshold and cooldownPeriod.
func (e entrant) scaledObject() *unstructured.Unstructured {
	metadata := map[string]any{
		"adminURL": e.scenario.Pulsar.Reached().AdminURL, "topic": e.input(), "subscription": e.function(),
		"msgBacklogThreshold": strconv.FormatInt(e.KEDAPulsar.Threshold, 10),
		"isPartitionedTopic":  strconv.FormatBool(e.scenario.Partitions > 0),
	}
	return e.unstructured(scaledObjects(), map[string]any{
		"scaleTargetRef": map[string]any{
			"apiVersion": e.kind().GroupVersion().String(), "kind": e.kind().Kind, "name": e.function(),
		},
		"minReplicaCount": int64(*e.scenario.MinReplicas), "maxReplicaCount": int64(e.scenario.MaxReplicas),
		"cooldownPeriod": int64(e.scenario.CooldownPeriod.Seconds()),
		"triggers":       []any{map[string]any{"type": "pulsar", "metadata": metadata}},
	})
}

// setting describes what scales the Function.
func (e entrant) setting() string {
	s := e.scenario
	bounds := fmt.Sprintf("%d to %d replicas", *s.MinReplicas, s.MaxReplicas)
	cooled := bounds
	if *s.MinReplicas == 0 {
		cooled += fmt.Sprintf(", cooldown %s", s.CooldownPeriod.Duration)
	}
	switch {
	case e.Policy != nil:
		forecast := ""
		if e.Policy.Forecast != "" {
			forecast = ", forecast " + e.Policy.Forecast
		}
		return fmt.Sprintf("AutoscalingPolicy by %s, latencyObjective %s, %s%s", e.Policy.Actuator,
			s.LatencyObjective.Duration, cooled, forecast)
	case e.KEDAPulsar != nil:
		return fmt.Sprintf("KEDA's pulsar scaler, msgBacklogThreshold %d, %s", e.KEDAPulsar.Threshold, cooled)
	case e.CPU != nil:
		return fmt.Sprintf("HorizontalPodAutoscaler on CPU at %d %%, %s", e.CPU.Percentage, bounds)
	default:
		return fmt.Sprintf("%d fixed replicas", e.Fixed.Replicas)
	}
}

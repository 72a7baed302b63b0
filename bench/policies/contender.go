// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// The contenders, by their names in the report.
const (
	byHPA      = "policies"
	direct     = "direct"
	directPush = "direct_push"
	ours       = "ours"
	oursPush   = "ours_push"
	kedaPulsar = "keda_pulsar"
)

// all contenders, in the order of the table.
func all() []string { return []string{byHPA, direct, directPush, ours, oursPush, kedaPulsar} }

// withKEDA reports whether a contender needs KEDA.
func withKEDA(contender string) bool {
	return contender == kedaPulsar || actuatorOf(contender) == v1alpha1.ActuatorKEDA
}

// withPush reports whether brokers report the first message to a contender.
func withPush(contender string) bool { return contender == directPush || contender == oursPush }

// withAutoscaler reports whether a contender's Functions have HorizontalPodAutoscalers.
func withAutoscaler(contender string) bool { return actuatorOf(contender) != v1alpha1.ActuatorDirect }

// actuatorOf is the actuator of a contender's policies; empty for the default, and for no policies.
func actuatorOf(contender string) v1alpha1.Actuator {
	switch contender {
	case direct, directPush:
		return v1alpha1.ActuatorDirect
	case ours, oursPush:
		return v1alpha1.ActuatorKEDA
	default:
		return ""
	}
}

const (
	maxReplicas = 12
	objective   = 30 * time.Second
	// threshold is the backlog of 50 messages a second in half of the objective.
	threshold = 750
	// cooldown is KEDA's cooldownPeriod for all contenders.
	cooldown = time.Minute
)

// setting describes the objects of a contender.
func setting(contender string) string {
	if contender == kedaPulsar {
		return fmt.Sprintf("ScaledObject with KEDA's pulsar scaler, msgBacklogThreshold %d", threshold)
	}
	text := "AutoscalingPolicy"
	if actuator := actuatorOf(contender); actuator != "" {
		text += " with actuator " + string(actuator)
	}
	if withPush(contender) {
		text += ", adapter with --wake-by-push"
	}
	return text
}

// subscriptionOf is the subscription that Function Mesh gives a Function.
func subscriptionOf(function string) string { return "public/default/" + function }

// objectOf is the object that a user of a contender creates for a Function.
func objectOf(contender, function, adminURL string) client.Object {
	const seconds = int64(cooldown / time.Second)
	if contender == kedaPulsar {
		metadata := map[string]any{
			"adminURL": adminURL, "topic": fake.TopicOf(function), "subscription": subscriptionOf(function),
			"msgBacklogThreshold": strconv.Itoa(threshold),
		}
		return stage.NewScaledObject(function, autoscalingv2.CrossVersionObjectReference{},
			map[string]any{"type": "pulsar", "metadata": metadata},
			map[string]any{"maxReplicaCount": int64(maxReplicas), "cooldownPeriod": seconds})
	}
	p := stage.NewPolicy(function, 0, maxReplicas, objective)
	p.Spec.Actuator = actuatorOf(contender)
	p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: new(int32(seconds))}}
	return p
}

// allReady reports whether all ScaledObjects are ready, and all policies know their backlogs.
func allReady(ctx context.Context, kube client.Client) (ready bool, missing string, err error) {
	var policies v1alpha1.AutoscalingPolicyList
	if err := kube.List(ctx, &policies, client.InNamespace(stage.Namespace)); err != nil {
		return false, "", fmt.Errorf("listing policies: %w", err)
	}
	for i := range policies.Items {
		if p := &policies.Items[i]; !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionBacklogKnown) {
			return false, "unknown backlog of " + p.Name, nil
		}
	}
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(stage.ScaledObjects())
	if err := kube.List(ctx, objects, client.InNamespace(stage.Namespace)); err != nil {
		return false, "", fmt.Errorf("listing ScaledObjects: %w", err)
	}
	for i := range objects.Items {
		if one := &objects.Items[i]; !isReady(one) {
			return false, one.GetName(), nil
		}
	}
	return true, "", nil
}

// isReady reports whether a ScaledObject is ready and has metrics, without which KEDA drops pushed values.
func isReady(object *unstructured.Unstructured) bool {
	metrics, _, _ := unstructured.NestedStringSlice(object.Object, "status", "externalMetricNames")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if fields, ok := one.(map[string]any); ok && fields["type"] == "Ready" {
			return fields["status"] == string(metav1.ConditionTrue) && len(metrics) > 0
		}
	}
	return false
}

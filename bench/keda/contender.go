// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// The contenders, by their names in the report.
const (
	ours         = "ours"
	kedaTuned    = "keda_pulsar"
	externalPush = "keda_external_push"
	externalPull = "keda_external_pull"
)

// all contenders, in the order of the table.
func all() []string { return []string{ours, kedaTuned, externalPush, externalPull} }

// contendersOf returns the contenders of a part, in the order of the table.
func contendersOf(part string) []string {
	if part == partOutage {
		return []string{ours, kedaTuned, externalPush}
	}
	return all()
}

// job is a Function that a contender scales.
type job struct {
	contender, function string
	// topic is a complete name; adminURL and scaler (host:port) are the contender's sources.
	topic, adminURL, scaler string
	objective, cooldown     time.Duration
	most                    int32
	// threshold in messages per replica.
	threshold int64
}

// object is the object that a user of the contender creates.
func (j job) object() client.Object {
	subscription := "public/default/" + j.function
	switch j.contender {
	case ours:
		return j.policy()
	case externalPush, externalPull:
		metadata := map[string]any{
			"scalerAddress": j.scaler, "topic": j.topic, "subscription": subscription,
			"messagesPerReplica": strconv.FormatInt(j.threshold, 10),
		}
		kind := "external-push"
		if j.contender == externalPull {
			kind = "external"
		}
		return j.scaledObject(kind, metadata)
	default:
		return j.scaledObject("pulsar", map[string]any{
			"adminURL": j.adminURL, "topic": j.topic, "subscription": subscription,
			"msgBacklogThreshold": strconv.FormatInt(j.threshold, 10),
		})
	}
}

// scaledObjectName is the ScaledObject of the job.
func (j job) scaledObjectName() string {
	if j.contender == ours {
		return plan.AutoscalerName(j.function)
	}
	return j.function
}

func (j job) policy() *v1alpha1.AutoscalingPolicy {
	p := stage.NewPolicy(j.function, 0, j.most, j.objective)
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	cooldown := int32(j.cooldown / time.Second) //nolint:gosec // a flag of minutes
	p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: &cooldown}}
	return p
}

// scaledObject has KEDA's defaults except for maxReplicaCount and cooldownPeriod.
func (j job) scaledObject(trigger string, metadata map[string]any) *unstructured.Unstructured {
	return stage.NewScaledObject(j.function, autoscalingv2.CrossVersionObjectReference{},
		map[string]any{"type": trigger, "metadata": metadata},
		map[string]any{"maxReplicaCount": int64(j.most), "cooldownPeriod": int64(j.cooldown / time.Second)})
}

// setting describes the set-up of a contender.
func setting(contender string) string {
	switch contender {
	case ours:
		return "AutoscalingPolicy with actuator KEDA, without a known capacity"
	case kedaTuned:
		return fmt.Sprintf("KEDA's pulsar scaler, msgBacklogThreshold %d, in part outage %d", burstThreshold,
			outageThreshold)
	case externalPush:
		return "our scaler by external-push without a policy, the same messagesPerReplica"
	default:
		return "our scaler by external (pull) without a policy, the same messagesPerReplica"
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// scaledObjectSpec has the fields of a ScaledObject's spec.
//
// Source: KEDA 2.21, apis/keda/v1alpha1/scaledobject_types.go.
type scaledObjectSpec struct {
	ScaleTargetRef struct {
		Name                   string `json:"name"`
		APIVersion             string `json:"apiVersion"`
		Kind                   string `json:"kind"`
		EnvSourceContainerName string `json:"envSourceContainerName"`
	} `json:"scaleTargetRef"`
	PollingInterval       *int32          `json:"pollingInterval"`
	CooldownPeriod        *int32          `json:"cooldownPeriod"`
	InitialCooldownPeriod *int32          `json:"initialCooldownPeriod"`
	IdleReplicaCount      *int32          `json:"idleReplicaCount"`
	MinReplicaCount       *int32          `json:"minReplicaCount"`
	MaxReplicaCount       *int32          `json:"maxReplicaCount"`
	Triggers              []trigger       `json:"triggers"`
	Fallback              *map[string]any `json:"fallback"`
	Advanced              struct {
		RestoreToOriginalReplicaCount bool `json:"restoreToOriginalReplicaCount"`
		HorizontalPodAutoscalerConfig struct {
			Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
		} `json:"horizontalPodAutoscalerConfig"`
		ScalingModifiers struct {
			Formula string `json:"formula"`
		} `json:"scalingModifiers"`
	} `json:"advanced"`
}

// Defaults of KEDA 2.21.
const (
	kedaMinReplicas = 0
	kedaMaxReplicas = 100
)

// scaledObject translates a ScaledObject with pulsar triggers. It passes over those of other products.
func (t *translator) scaledObject(object *unstructured.Unstructured) {
	namespace := object.GetNamespace()
	origin := Origin{Kind: plan.KindScaledObject, Namespace: namespace, Name: object.GetName()}
	title := plan.KindScaledObject + " " + namespace + "/" + object.GetName()
	var decoded struct {
		Spec scaledObjectSpec `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &decoded); err != nil {
		t.problem(title, "it cannot be decoded: %v", err)
		return
	}
	spec := decoded.Spec
	ref := v1alpha1.ScaleTargetRef{
		APIVersion: cmp.Or(spec.ScaleTargetRef.APIVersion, "apps/v1"),
		Kind:       cmp.Or(spec.ScaleTargetRef.Kind, kindDeployment), Name: spec.ScaleTargetRef.Name,
	}
	switch {
	case controllerKind(object) == v1alpha1.KindAutoscalingPolicy:
		return
	case !slices.ContainsFunc(spec.Triggers, trigger.isPulsar):
		t.withoutPulsarTrigger(title, ref, spec)
		return
	}
	target, impossible := t.resolve(namespace, ref)
	if impossible != "" {
		t.problem(title, "%s", impossible)
		return
	}
	d := t.draft(namespace, target.ref)
	origin.Paused = pausedByUser(object.GetAnnotations())
	origin.Restores = spec.Advanced.RestoreToOriginalReplicaCount
	d.origins = append(d.origins, origin)
	if d.existing != nil {
		return
	}
	d.kedaBounds(origin, spec)
	triggers := triggers{
		translator: t, draft: d, title: title, scaled: target, all: spec.Triggers,
		environment: t.environment(keyOf(namespace, ref), spec.ScaleTargetRef.EnvSourceContainerName),
	}
	triggers.translate()
	t.behavior(d, origin, title, spec.Advanced.HorizontalPodAutoscalerConfig.Behavior)
	d.pauses(origin, object.GetAnnotations())
	t.kedaRest(d, title, spec)
}

// withoutPulsarTrigger reports a ScaledObject that scales by Pulsar all the same: a query of Pulsar's metrics, or a
// Function as its target.
func (t *translator) withoutPulsarTrigger(title string, ref v1alpha1.ScaleTargetRef, spec scaledObjectSpec) {
	var types []string
	about := strings.HasPrefix(ref.APIVersion, groupFunctionMesh+"/")
	for _, one := range spec.Triggers {
		types = append(types, one.Type)
		if _, ours := one.Metadata["scalerAddress"]; ours {
			return // of an external scaler, which may be ours
		}
		for _, value := range one.Metadata {
			about = about || strings.Contains(value, "pulsar_")
		}
	}
	if about {
		t.problem(title, "it has no trigger of type pulsar (but %s): write a policy for %s %s, with "+
			"spec.subscription if that is no Function (examples/deployment.yaml)", strings.Join(types, ", "), ref.Kind,
			ref.Name)
	}
}

func (d *draft) kedaBounds(origin Origin, spec scaledObjectSpec) {
	low := boundOf(spec.MinReplicaCount, "minReplicaCount", kedaMinReplicas)
	if idle := spec.IdleReplicaCount; idle != nil && *idle < low.value {
		d.note("minReplicaCount %d: minReplicas is idleReplicaCount, and a policy has one lower limit. It may run fewer "+
			"than %d replicas while there is little to do.", low.value, low.value)
		low = bound{*idle, "idleReplicaCount"}
	}
	d.bounds(origin, low, boundOf(spec.MaxReplicaCount, "maxReplicaCount", kedaMaxReplicas))
	if seconds := spec.CooldownPeriod; seconds != nil && *d.spec.MinReplicas == 0 {
		d.scaleDown().CooldownPeriodSeconds = new(min(*seconds, maxCooldown))
		d.comment(fieldBehavior, "cooldownPeriodSeconds is cooldownPeriod of %s.", origin)
	}
}

// kedaRest names what a policy does not have.
func (t *translator) kedaRest(d *draft, title string, spec scaledObjectSpec) {
	if spec.PollingInterval != nil {
		d.note("pollingInterval %d: it is --poll-interval of the adapter (in adapter.extraArgs of the chart), 10s by "+
			"default, for all policies.", *spec.PollingInterval)
	}
	if spec.InitialCooldownPeriod != nil {
		d.note("initialCooldownPeriod: not needed. A policy scales to zero only once it knows that the backlog is empty.")
	}
	if spec.Fallback != nil {
		d.note("fallback: not needed. Replicas stay while the backlog is unknown.")
	}
	if spec.Advanced.RestoreToOriginalReplicaCount {
		d.note("restoreToOriginalReplicaCount: set it to false in %s before you delete that. KEDA would set the replicas "+
			"from before it was created.", title)
	}
	if spec.Advanced.ScalingModifiers.Formula != "" {
		d.keeps = true
		t.problem(title, "advanced.scalingModifiers has a formula, which a policy has not: %s", keepScaledObject)
	}
}

// pausedByUser reports whether a ScaledObject is paused, and not by a policy that took it over.
func pausedByUser(annotations map[string]string) bool {
	return plan.IsPaused(annotations) && annotations[plan.AnnotationPausedBy] == ""
}

// pauses keeps the directions that a user paused, and names how to keep a pause of both.
func (d *draft) pauses(origin Origin, annotations map[string]string) {
	switch at := annotations[plan.AnnotationPausedAt]; {
	case at != "":
		d.note("%s is paused now at %s replicas. The policy scales the target with mode Auto: to keep it so, set "+
			"minReplicas and maxReplicas %s.", origin, at, at)
	case plan.IsPaused(annotations):
		d.note("%s is paused now, so nothing scales the target. The policy does so with mode Auto: to keep it so, set "+
			"mode Paused.", origin)
	}
	if plan.IsSet(annotations, plan.AnnotationPausedIn) {
		d.keepReplicas("annotation paused-scale-in", origin)
	}
	if plan.IsSet(annotations, plan.AnnotationPausedOut) {
		d.addNone("annotation paused-scale-out", origin)
	}
}

// keepScaledObject is what to do where KEDA has to stay.
const keepScaledObject = "leave the policy in mode Recommend, and replace the pulsar triggers of the ScaledObject by " +
	"one of type external-push that reads the policy (docs/keda.md, The decision of a policy)"

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Keys, conditions and actions of a component's status.
const (
	partStatefulSet = "StatefulSet"
	partHPA         = "HorizontalPodAutoscaler"

	actionCreate, actionUpdate, actionWait, actionNone = "Create", "Update", "Wait", "NoAction"
)

// status is that of a Function, Sink or Source: conditions are a map by part. Conditions, replicas and selector are
// required together.
type status struct {
	Conditions         map[string]condition `json:"conditions"`
	ObservedGeneration int64                `json:"observedGeneration,omitempty"`
	Replicas           int32                `json:"replicas"`
	Selector           string               `json:"selector"`
}

type condition struct {
	Condition string                 `json:"condition,omitempty"`
	Status    metav1.ConditionStatus `json:"status,omitempty"`
	Action    string                 `json:"action,omitempty"`
}

func (c condition) done() bool { return c.Status == metav1.ConditionTrue }

func report(name, action string) condition {
	ready := metav1.ConditionTrue
	if action == actionCreate || action == actionUpdate {
		ready = metav1.ConditionFalse
	}
	return condition{Condition: name, Status: ready, Action: action}
}

// owned are the live objects of a component; nil does not exist.
type owned struct {
	statefulSet *appsv1.StatefulSet
	hpa         *autoscalingv2.HorizontalPodAutoscaler
}

// observe updates the status from the owned objects. Replicas and selector change only while no update of the
// StatefulSet is pending, so one reconcile later; replicas are those in the StatefulSet's spec, not the running ones.
func observe(now status, live, want owned) status {
	next := status{
		Conditions:         map[string]condition{partStatefulSet: report("StatefulSetReady", actionCreate)},
		ObservedGeneration: now.ObservedGeneration, Replicas: now.Replicas, Selector: now.Selector,
	}
	if set := live.statefulSet; set != nil {
		next.Selector = metav1.FormatLabelSelector(set.Spec.Selector)
		action := actionUpdate
		if sameStatefulSet(set, want.statefulSet) {
			next.Replicas = *set.Spec.Replicas
			action = actionWait
			if set.Status.ReadyReplicas == *set.Spec.Replicas {
				action = actionNone
			}
		}
		next.Conditions[partStatefulSet] = report("StatefulSetReady", action)
	}
	if want.hpa != nil {
		action := actionCreate
		if live.hpa != nil {
			action = actionUpdate
			if sameHPA(live.hpa, want.hpa) {
				action = actionNone
			}
		}
		next.Conditions[partHPA] = report("HPAReady", action)
	}
	return next
}

// sameStatefulSet compares only what CheckIfStatefulSetSpecIsEqual compares: other drift in the template stays until
// the next generation, which removes all of it.
func sameStatefulSet(live, want *appsv1.StatefulSet) bool {
	if live.Spec.Replicas == nil || *live.Spec.Replicas != *want.Spec.Replicas {
		return false
	}
	return slices.EqualFunc(live.Spec.Template.Spec.Containers, want.Spec.Template.Spec.Containers,
		func(a, b corev1.Container) bool {
			return a.Name == b.Name && a.Image == b.Image && len(a.Env) == len(b.Env) &&
				slices.Equal(a.Command, b.Command) && slices.Equal(a.Args, b.Args) &&
				equality.Semantic.DeepEqual(a.EnvFrom, b.EnvFrom) && equality.Semantic.DeepEqual(a.Resources, b.Resources)
		})
}

// sameHPA compares minimum, maximum and metrics. A change of scaleTargetRef or behavior goes unnoticed.
func sameHPA(live, want *autoscalingv2.HorizontalPodAutoscaler) bool {
	return live.Spec.MinReplicas != nil && *live.Spec.MinReplicas == *want.Spec.MinReplicas &&
		live.Spec.MaxReplicas == want.Spec.MaxReplicas && equality.Semantic.DeepEqual(live.Spec.Metrics, want.Spec.Metrics)
}

func readStatus(object *unstructured.Unstructured) (status, error) {
	var s status
	fields, _, err := unstructured.NestedMap(object.Object, "status")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &s)
	}
	if err != nil {
		return status{}, fmt.Errorf("reading the status of %s: %w", object.GetName(), err)
	}
	return s, nil
}

func writeStatus(object *unstructured.Unstructured, s status) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", object.GetName(), err)
	}
	return unstructured.SetNestedMap(object.Object, fields, "status")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// circumstances notes in the target what a change of its replicas would do beside changing their number.
func (t *Targets) circumstances(ctx context.Context, namespace string, target *policy.Target) error {
	if target == nil || target.Invalid != "" || target.Scaling == policy.ByWorker {
		return nil
	}
	var w workload
	statefulSet := target.Ref.Name
	if target.Ref.Kind != kindStatefulSet {
		object, err := t.remembered(ctx, target.Ref.Kind, namespace, target.Ref.Name)
		if err != nil {
			return err
		}
		if object != nil {
			if w, err = decodeWorkload(target.Ref.Kind, object.Object); err != nil {
				return nil //nolint:nilerr // Find has told already
			}
		}
		statefulSet = policy.FunctionMeshName(target.Ref)
	}
	set, err := t.remembered(ctx, kindStatefulSet, namespace, statefulSet)
	if err != nil {
		return err
	}
	vertical, err := t.verticalAutoscalers(ctx, namespace, target.Scaled)
	if err != nil {
		return err
	}
	target.Updating = updating(set)
	if paused := w.pausedRollout(); paused != nil && target.Frozen == nil {
		target.Frozen = paused
	}
	target.Disturbances = append(target.Disturbances, w.disturbances(set)...)
	target.Disturbances = append(target.Disturbances, vertical...)
	return nil
}

// remembered reads one object from memory; nil when it does not exist.
func (t *Targets) remembered(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	if !t.config.Installed(kind) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	object := newWorkload(kind)
	err := t.config.Workloads.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object,
		client.UnsafeDisableDeepCopy)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading %s %s/%s: %w", kind, namespace, name, err)
	case err != nil:
		return nil, nil //nolint:nilnil,nilerr // none is an answer
	}
	return object, nil
}

// pausedRollout is the reason to leave the replicas alone while there is a change that somebody paused: Function Mesh
// takes any change of the spec, the number of replicas included, for the word to go on.
//
// Source: Function Mesh v0.27.2, measured: an annotation, a status.pendingChange, and a new revision after kubectl
// scale.
func (w workload) pausedRollout() *policy.Hold {
	if w.Metadata.Annotations[annotationPauseRollout] != "true" || w.Status.PendingChange == "" {
		return nil
	}
	return &policy.Hold{
		Reason: policy.HoldRolloutPaused,
		Message: fmt.Sprintf("a rollout of %s %s is paused, and a change of its replicas would release it: "+
			"remove the annotation %s to let it go", w.Kind, w.Metadata.Name, annotationPauseRollout),
	}
}

// disturbances that follow from the object's own fields and from its StatefulSet, which may be nil.
//
// Source: Function Mesh v0.27.2 rewrites the pod template at every change of replicas. Measured over 200 changes each,
// it came out different in 0 % for a plain Function, in 19 % for two secrets, 35 % for three and 99.5 % for
// showPreciseParallelism.
func (w workload) disturbances(set *unstructured.Unstructured) []policy.Disturbance {
	var all []policy.Disturbance
	if w.Spec.ShowPreciseParallelism {
		all = append(all, policy.Disturbance{
			Reason: policy.ReasonPreciseParallelism, Restarts: true,
			Message: "spec.showPreciseParallelism puts the number of replicas into each pod, so every change restarts all of " +
				"them: remove it",
		})
	}
	if n := len(w.Spec.SecretsMap); n > 1 {
		all = append(all, policy.Disturbance{
			Reason: policy.ReasonSecretsInRandomOrder,
			Message: fmt.Sprintf("Function Mesh writes the %d entries of spec.secretsMap in random order, so some changes of "+
				"the number of replicas "+
				"restart all of them: use at most one entry", n),
		})
	}
	if paused := w.pausedRollout(); paused != nil {
		all = append(all, policy.Disturbance{Reason: policy.ReasonRolloutPaused, Message: paused.Message})
	}
	if set != nil && w.Kind != "" {
		restarted, _, _ := unstructured.NestedString(set.Object, "spec", "template", "metadata", "annotations",
			annotationRestartedAt)
		if restarted != "" && w.Spec.Pod.Annotations[annotationRestartedAt] != restarted {
			all = append(all, policy.Disturbance{
				Reason: policy.ReasonRestartUndone,
				Message: fmt.Sprintf("StatefulSet %s was restarted by hand, and with the next change of replicas Function Mesh "+
					"takes that back, which restarts "+
					"all of them again: set spec.pod.annotations[%q] of %s %s to %q", set.GetName(), annotationRestartedAt, w.Kind,
					w.Metadata.Name, restarted),
			})
		}
	}
	if vertical := w.Spec.Pod.VPA; vertical != nil && resizes(vertical.UpdatePolicy.UpdateMode) {
		all = append(all, resized("spec.pod.vpa", vertical.UpdatePolicy.UpdateMode))
	}
	return all
}

// verticalAutoscalers that change the pods of what is scaled, sorted by name.
func (t *Targets) verticalAutoscalers(ctx context.Context, namespace string,
	scaled []v1alpha1.ScaleTargetRef,
) ([]policy.Disturbance, error) {
	if !t.config.Installed(kindVerticalPodAutoscaler) {
		return nil, nil
	}
	modes := map[string]string{}
	for _, ref := range scaled {
		list := newWorkloadList(kindVerticalPodAutoscaler)
		if err := t.config.Workloads.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
			client.MatchingFields{indexScaleTarget: scaleTarget(ref.APIVersion, ref.Kind, ref.Name)}); err != nil {
			return nil, fmt.Errorf("listing VerticalPodAutoscalers: %w", err)
		}
		for i := range list.Items {
			mode, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "updatePolicy", "updateMode")
			if resizes(mode) {
				modes[list.Items[i].GetName()] = mode
			}
		}
	}
	var all []policy.Disturbance
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		all = append(all, resized(kindVerticalPodAutoscaler+" "+name, modes[name]))
	}
	return all, nil
}

// resizes says that pods get other resources while they run. Without a mode they do.
func resizes(mode string) bool { return !slices.Contains([]string{"Off", "Initial"}, mode) }

func resized(who, mode string) policy.Disturbance {
	return policy.Disturbance{
		Reason: policy.ReasonVerticalAutoscaler,
		Message: fmt.Sprintf("%s restarts replicas with other resources (mode %s), so what was learned of one does not "+
			"last: set its updateMode to Off or Initial",
			who, withDefault(mode, "Auto")),
	}
}

// updating says that a StatefulSet, which may be nil, is replacing pods by those of a new revision. One that waits for
// somebody to delete pods, or stops at a partition, is not.
func updating(set *unstructured.Unstructured) bool {
	if set == nil {
		return false
	}
	current, _, _ := unstructured.NestedString(set.Object, "status", "currentRevision")
	next, _, _ := unstructured.NestedString(set.Object, "status", "updateRevision")
	replicas, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
	updated, _, _ := unstructured.NestedInt64(set.Object, "status", "updatedReplicas")
	strategy, _, _ := unstructured.NestedString(set.Object, "spec", "updateStrategy", "type")
	partition, _, _ := unstructured.NestedInt64(set.Object, "spec", "updateStrategy", "rollingUpdate", "partition")
	return current != "" && next != "" && current != next && updated < replicas && strategy != "OnDelete" && partition == 0
}

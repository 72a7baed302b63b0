// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Finalizer keeps a policy until what it took over is restored.
const Finalizer = v1alpha1.Group + "/restore"

// AnnotationPausedBy names the policy on a ScaledObject that it paused.
const AnnotationPausedBy = v1alpha1.Group + "/paused-by"

// Suspension is one object or field to suspend for a policy with conflictPolicy TakeOver: a HorizontalPodAutoscaler is
// deleted, a ScaledObject paused, so that KEDA deletes its HorizontalPodAutoscaler, and maxReplicas of the target is
// removed, so that Function Mesh runs no autoscaler of its own.
type Suspension struct {
	// Kind, Name and UID of the object; empty for maxReplicas.
	Kind, Name string
	UID        types.UID
	// Record is status.takenOver before the step, so that it can be restored after any failure.
	Record v1alpha1.TakenOver
	// Orphaned is true if Function Mesh does not recreate it, since its maxReplicas is removed.
	Orphaned bool
}

// String names it in a sentence.
func (s Suspension) String() string {
	if s.Kind == "" {
		return "maxReplicas of the target"
	}
	return s.Kind + " " + s.Name
}

// maxTakenOver is the number of objects of a kind that a status holds.
const maxTakenOver = 4

// NextSuspension is the next object or field to suspend, or nil and the remaining problem. The controller suspends
// nothing for a policy without a decision, or with another problem.
//
// Function Mesh v0.27.2 recreates its autoscaler within 11 ms while maxReplicas is set. So the controller first clears
// maxReplicas, and then deletes the orphaned autoscaler.
func NextSuspension(o Observed) (*Suspension, *Violation) {
	v := o.Violation
	if !takesOver(o.Policy.Spec, v) {
		return nil, v
	}
	keep := func(message string) *Violation { return &Violation{v.Condition, v.Reason, message} }
	switch hold := cmp.Or(o.Target.Frozen, o.SwitchedOff()); {
	case o.Unknown != nil:
		return nil, ScalingProblem(v1alpha1.ReasonTakingOver, "%s; the controller takes it over once the backlog is known",
			v.Message)
	case hold != nil:
		return nil, keep(v.Message + "; the controller does not take it over now: " + hold.Message)
	case o.Actuator.Type == v1alpha1.ActuatorHPA && o.Capabilities.noMetricsReason() != "":
		return nil, keep(v.Message + "; the controller does not take it over for actuator HPA: " + o.Actuator.Reason)
	}
	if why := cannotTakeOver(o.Subject, o.Conflicting); why != "" {
		return nil, keep(why)
	}
	step, problem := nextStep(o.Subject, o.Conflicting)
	// The controller does not fight a tool that recreates what it suspended, such as a GitOps controller.
	if step != nil && !step.Orphaned && o.History.suspendedBefore(o.Subject, step.String()) {
		return nil, ScalingProblem(v1alpha1.ReasonRecreated, "%s was suspended and recreated: first stop the tool that "+
			"writes it, such as a GitOps controller. %s", step, v.Message)
	}
	return step, problem
}

// nextStep is the next step of a takeover.
func nextStep(s Subject, conflicting []ConflictingAutoscaler) (*Suspension, *Violation) {
	var record v1alpha1.TakenOver
	if known := s.Policy.Status.TakenOver; known != nil {
		record = *known.DeepCopy()
	}
	if s.Target.MaxReplicas != nil {
		record.MaxReplicas = s.Target.MaxReplicas
		return &Suspension{Record: record}, nil
	}
	for _, r := range conflicting {
		switch {
		case r.Terminating:
			continue
		case r.Kind == KindScaledObject:
			if name := v1alpha1.ObjectName(r.Name); !slices.Contains(record.ScaledObjects, name) {
				record.ScaledObjects = append(record.ScaledObjects, name)
			}
			return &Suspension{Kind: r.Kind, Name: r.Name, UID: r.UID, Record: record}, nil
		case record.MaxReplicas == nil || !r.isOrphaned(s.Target): // Function Mesh recreates its own with maxReplicas
			record.HorizontalPodAutoscalers = withManifest(record.HorizontalPodAutoscalers, r)
		}
		return &Suspension{
			Kind: r.Kind, Name: r.Name, UID: r.UID, Record: record, Orphaned: r.isOrphaned(s.Target),
		}, nil
	}
	r := conflicting[0]
	return nil, ScalingProblem(v1alpha1.ReasonTakingOver, "%s still: %s", r, conflictFix(r))
}

// cannotTakeOver is what the user must fix before the controller can take over; empty for nothing.
func cannotTakeOver(s Subject, conflicting []ConflictingAutoscaler) string {
	autoscalers := 0
	var paused []v1alpha1.ObjectName // and those that are to be
	if known := s.Policy.Status.TakenOver; known != nil {
		paused = slices.Clone(known.ScaledObjects)
	}
	for _, r := range conflicting {
		switch {
		case r.Terminating:
		case r.Kind == KindScaledObject && !r.ofPolicy():
			if name := v1alpha1.ObjectName(r.Name); !slices.Contains(paused, name) {
				paused = append(paused, name)
			}
		case r.Owner != "" && !r.ofFunctionMesh(s.Target):
			return r.String() + ", which TakeOver leaves alone: " + conflictFix(r)
		case r.Manifest == "":
			return r.String() + " and has more than 16 KiB, too much to restore: delete it"
		default:
			autoscalers++
		}
	}
	if max(autoscalers, len(paused)) > maxTakenOver {
		return fmt.Sprintf("%d HorizontalPodAutoscalers and %d ScaledObjects scale %s, paused ones included, of which at "+
			"most %d each can be restored: delete some, or set conflictPolicy: Refuse once to restore what was taken over",
			autoscalers, len(paused), Name(s.Policy.Spec), maxTakenOver)
	}
	return ""
}

// withManifest adds the manifest of a conflicting autoscaler: the newest of each name, and at most maxTakenOver.
func withManifest(manifests []v1alpha1.Manifest, r ConflictingAutoscaler) []v1alpha1.Manifest {
	kept := slices.DeleteFunc(slices.Clone(manifests), func(m v1alpha1.Manifest) bool {
		hpa, err := DecodeManifest(m)
		return err != nil || hpa.Name == r.Name
	})
	kept = append(kept, r.Manifest)
	return kept[max(0, len(kept)-maxTakenOver):]
}

// DecodeManifest decodes the manifest of an autoscaler.
func DecodeManifest(m v1alpha1.Manifest) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	var hpa autoscalingv2.HorizontalPodAutoscaler
	if err := json.Unmarshal([]byte(m), &hpa); err != nil {
		return nil, fmt.Errorf("decoding a manifest of status.takenOver: %w", err)
	}
	return &hpa, nil
}

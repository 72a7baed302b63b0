// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Finalizer keeps a policy until what it took over is given back.
const Finalizer = v1alpha1.Group + "/give-back"

// AnnotationPausedBy names the policy on a ScaledObject that was paused for it.
const AnnotationPausedBy = v1alpha1.Group + "/paused-by"

// SuspensionAction is what becomes of a conflicting autoscaler.
type SuspensionAction int

// The actions.
const (
	// ClearMaxReplicas has Function Mesh run no autoscaler of its own.
	ClearMaxReplicas SuspensionAction = iota + 1
	// DeleteAutoscaler deletes a HorizontalPodAutoscaler.
	DeleteAutoscaler
	// PauseScaledObject has KEDA delete its HorizontalPodAutoscaler and keep the rest.
	PauseScaledObject
)

// Suspension is one thing to suspend for a policy with conflictPolicy TakeOver.
type Suspension struct {
	Action SuspensionAction
	// Name and UID of the object; empty for maxReplicas.
	Name string
	UID  types.UID
	// Record is what status.takenOver has to say before the step is taken, so that whatever happens then it can be given
	// back.
	Record v1alpha1.TakenOver
	// LeftBehind says that Function Mesh does not make it again: it forgot it when its maxReplicas went.
	LeftBehind bool
}

// String says it in a sentence.
func (s Suspension) String() string {
	switch s.Action {
	case ClearMaxReplicas:
		return "maxReplicas of the target"
	case DeleteAutoscaler:
		return kindAutoscaler + " " + s.Name
	default:
		return kindScaledObject + " " + s.Name
	}
}

// maxTakenOver is how many of a kind a status can hold.
const maxTakenOver = 4

// NextSuspension is the next thing to suspend, or nil and what stands in the way still. Nothing is suspended for a
// policy that could not go on from there: before its own decision is known, or while another thing stays in the way.
//
// The order is that of Function Mesh v0.27.2: while maxReplicas is set it recreates its autoscaler within 11 ms. So
// the controller clears maxReplicas first, and then deletes what Function Mesh leaves behind.
func NextSuspension(o Observed) (*Suspension, *Violation) {
	w, v := o, o.Violation
	if v == nil || w.Policy.Spec.ConflictPolicy != v1alpha1.ConflictTakeOver ||
		!slices.Contains([]string{
			v1alpha1.ReasonFunctionHasOwnAutoscaler, v1alpha1.ReasonAutoscalerOrphaned,
			v1alpha1.ReasonConflictingAutoscaler,
		}, v.Reason) {
		return nil, v
	}
	standing := func(message string) *Violation { return &Violation{v.Condition, v.Reason, message} }
	switch {
	case o.Unknown != nil:
		return nil, standing(v.Message + "; it is taken over when the backlog is known")
	case w.Target.Frozen != nil:
		return nil, standing(v.Message + "; it is not taken over for now: " + w.Target.Frozen.Message)
	}
	if why := cannotTakeOver(w); why != "" {
		return nil, standing(why)
	}
	step, violation := nextStep(w)
	if step != nil && o.History.suspendedAgain(o, *step) {
		return nil, &Violation{v.Condition, v1alpha1.ReasonRecreated, fmt.Sprintf(
			"%s was suspended and is back: stop the tool that writes it (GitOps?) first. %s", step, v.Message)}
	}
	return step, violation
}

// nextStep of what can be taken over.
func nextStep(o Observed) (*Suspension, *Violation) {
	var record v1alpha1.TakenOver
	if known := o.Policy.Status.TakenOver; known != nil {
		record = *known.DeepCopy()
	}
	if o.Target.OwnAutoscaler {
		record.MaxReplicas = o.Target.MaxReplicas
		return &Suspension{Action: ClearMaxReplicas, Record: record}, nil
	}
	for _, r := range o.Conflicting {
		switch {
		case r.Terminating:
			continue
		case r.Kind == kindScaledObject:
			if name := v1alpha1.ObjectName(r.Name); !slices.Contains(record.ScaledObjects, name) {
				record.ScaledObjects = append(record.ScaledObjects, name)
			}
			return &Suspension{Action: PauseScaledObject, Name: r.Name, UID: r.UID, Record: record}, nil
		case record.MaxReplicas == nil || !leftBehind(o, r): // with its maxReplicas Function Mesh makes its own again
			record.HorizontalPodAutoscalers = withManifest(record.HorizontalPodAutoscalers, r)
		}
		return &Suspension{Action: DeleteAutoscaler, Name: r.Name, UID: r.UID, Record: record, LeftBehind: leftBehind(o, r)},
			nil
	}
	r := o.Conflicting[0]
	return nil, &Violation{
		v1alpha1.ConditionAutoscalerApplied, v1alpha1.ReasonTakingOver,
		r.String() + " still: " + remedy(r),
	}
}

// cannotTakeOver says what has to be mended by a person all the same; empty when nothing has to.
func cannotTakeOver(o Observed) string {
	if o.Target.OwnAutoscaler && o.Target.MaxReplicas == nil {
		return "how many replicas the target's own autoscaler may use is not known, so it cannot be given back: remove it"
	}
	autoscalers := 0
	var paused []v1alpha1.ObjectName // and those that are to be
	if known := o.Policy.Status.TakenOver; known != nil {
		paused = slices.Clone(known.ScaledObjects)
	}
	for _, r := range o.Conflicting {
		switch {
		case r.Terminating:
		case r.Kind == kindScaledObject && !r.ofPolicy():
			if name := v1alpha1.ObjectName(r.Name); !slices.Contains(paused, name) {
				paused = append(paused, name)
			}
		case r.Owner != "" && !ofFunctionMesh(o, r):
			return r.String() + ", which TakeOver leaves alone: " + remedy(r)
		case r.Manifest == "":
			return r.String() + " and has more than 16 KiB, too much to be given back: delete it"
		default:
			autoscalers++
		}
	}
	if max(autoscalers, len(paused)) > maxTakenOver {
		return fmt.Sprintf("%d HorizontalPodAutoscalers and %d ScaledObjects scale %s, those that are paused for it among "+
			"them, of which at most %d each "+
			"can be given back: delete some, or set conflictPolicy: Refuse once to have given back what was taken over",
			autoscalers, len(paused), Name(o.Policy.Spec), maxTakenOver)
	}
	return ""
}

// withManifest keeps a conflicting autoscaler's manifest, the newest of each name and no more than fit.
func withManifest(manifests []v1alpha1.Manifest, r ConflictingAutoscaler) []v1alpha1.Manifest {
	kept := slices.DeleteFunc(slices.Clone(manifests), func(m v1alpha1.Manifest) bool {
		hpa, err := DecodeManifest(m)
		return err != nil || hpa.Name == r.Name
	})
	kept = append(kept, r.Manifest)
	return kept[max(0, len(kept)-maxTakenOver):]
}

// DecodeManifest reads what was kept of an autoscaler.
func DecodeManifest(m v1alpha1.Manifest) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	var hpa autoscalingv2.HorizontalPodAutoscaler
	if err := json.Unmarshal([]byte(m), &hpa); err != nil {
		return nil, fmt.Errorf("decoding a manifest of status.takenOver: %w", err)
	}
	return &hpa, nil
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// reasonReplicasChangedExternally is the reason of the event about replicas that the policy did not decide.
const reasonReplicasChangedExternally = "ReplicasChangedExternally"

// lookUpTimeout bounds the search for a writer: the decision waits for it.
const lookUpTimeout = 2 * time.Second

// writers reads who wrote the replicas of targets.
type writers struct {
	// live reads from the API server: objects in the cache have no managed fields.
	live client.Reader
}

// lookUp reads who wrote the target's replicas where they changed and that was not decided; nil where nothing is to be
// known.
func (w writers) lookUp(ctx context.Context, observed plan.Observed) *plan.WriterLookup {
	if !plan.WriterIsSought(observed) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	writer, err := w.read(ctx, observed)
	return &plan.WriterLookup{Writer: writer, Failed: err}
}

func (w writers) read(ctx context.Context, observed plan.Observed) (plan.Writer, error) {
	ref := observed.Target.Ref
	if observed.Target.Scaling == plan.ByMesh {
		ref = observed.Policy.Spec.ScaleTargetRef
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(kind)
	err := w.live.Get(ctx, types.NamespacedName{Namespace: observed.Policy.Namespace, Name: ref.Name}, &object)
	switch {
	case apierrors.IsForbidden(err):
		return plan.Writer{}, fmt.Errorf("grant the adapter get on objects of kind %s of %s: %w", ref.Kind, ref.APIVersion,
			err)
	case err != nil:
		return plan.Writer{}, fmt.Errorf("reading the managed fields of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return plan.LastWriter(object.ManagedFields, plan.WrittenPath(observed))
}

// reportManualScale says who changed the target's replicas.
func (r *PolicyReconciler) reportManualScale(ctx context.Context, observed plan.Observed) {
	manual := plan.NoticedManualScale(observed)
	if manual == nil {
		return
	}
	note := plan.Shorten(manual.String(), maxNote)
	r.config.Recorder.Eventf(observed.Policy, nil, corev1.EventTypeNormal, reasonReplicasChangedExternally,
		fmt.Sprintf("Write%dTo%d", manual.From, manual.To), "%s", note)
	log.FromContext(ctx).Info("replicas changed externally", "target", plan.ShortName(observed.Policy.Spec), "from",
		manual.From, "to", manual.To, "why", note)
}

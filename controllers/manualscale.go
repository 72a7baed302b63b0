// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

const reasonReplicasChangedExternally = "ReplicasChangedExternally"

// lookUpTimeout bounds the lookup of a writer, which delays the decision.
const lookUpTimeout = 2 * time.Second

// writers looks up who wrote the replicas of targets.
type writers struct {
	// live reads from the API server: objects in the cache have no managed fields.
	live client.Reader
	// lists are the last writers of lists of FunctionMeshes other than the controller, by mesh and list. Once the
	// controller restores one entry that an apply reset, it owns the whole list, and the API server no longer shows who
	// reset the others.
	lists *backlog.Cache[string, plan.Writer]
}

func newWriters(live client.Reader) *writers {
	return &writers{live: live, lists: backlog.NewCache[string, plan.Writer](rememberLists, mostLists)}
}

const (
	// rememberLists is how long lists keeps a writer: an apply makes all policies of a mesh look it up.
	rememberLists = 10 * time.Second
	mostLists     = 10_000
)

// lookUp returns who wrote the target's replicas if they changed without a decision; nil if there is nothing to look
// up.
func (w *writers) lookUp(ctx context.Context, observed plan.Observed) *plan.WriterLookup {
	if !plan.NeedsWriter(observed) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	writer, err := w.read(ctx, observed.Subject)
	return &plan.WriterLookup{Writer: writer, Failed: err}
}

func (w *writers) read(ctx context.Context, subject plan.Subject) (plan.Writer, error) {
	ref := subject.Target.Ref
	if subject.Target.Scaling == plan.ByMesh {
		ref = subject.Policy.Spec.ScaleTargetRef
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(kind)
	err := w.live.Get(ctx, types.NamespacedName{Namespace: subject.Policy.Namespace, Name: ref.Name}, &object)
	switch {
	case apierrors.IsForbidden(err):
		return plan.Writer{}, fmt.Errorf("grant the adapter get on objects of kind %s of %s: %w", ref.Kind, ref.APIVersion,
			err)
	case err != nil:
		return plan.Writer{}, fmt.Errorf("reading the managed fields of %s %s: %w", ref.Kind, ref.Name, err)
	}
	path := plan.WrittenPath(subject.Policy.Spec.ScaleTargetRef, subject.Target.Scaling)
	writer, err := plan.LastWriter(object.ManagedFields, path)
	if err != nil || subject.Target.Scaling != plan.ByMesh {
		return writer, err
	}
	return w.otherThanOurs(strings.Join(append([]string{subject.Policy.Namespace, ref.Name}, path...), "/"), writer,
		subject.Now), nil
}

// otherThanOurs returns the last writer of a list other than the controller, if one was seen lately. The write of the
// controller to the own entry of the target is not looked up.
func (w *writers) otherThanOurs(list string, writer plan.Writer, now time.Time) plan.Writer {
	if writer.Manager != plan.FieldManager {
		w.lists.Put(list, writer, now)
		return writer
	}
	if last, found := w.lists.Get(list, now); found {
		return last
	}
	return writer
}

func (r *PolicyReconciler) reportManualScale(ctx context.Context, observed plan.Observed) {
	manual := plan.DetectManualScale(observed)
	if manual == nil {
		return
	}
	recordEvent(ctx, r.config.Recorder, observed.Policy, report.Event{
		Type: corev1.EventTypeNormal, Reason: reasonReplicasChangedExternally,
		Action: fmt.Sprintf("Write%dTo%d", manual.From, manual.To), Note: manual.String(),
	})
}

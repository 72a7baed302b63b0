// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// reconciler turns the components of one kind into StatefulSets and HPAs.
type reconciler struct {
	kind   string
	client client.Client
	paused *atomic.Bool
	// changed is called with a component's desired replicas, and with nil after its deletion.
	changed func(key client.ObjectKey, replicas *int32)
}

// register watches the objects that Function Mesh watches: CRs including their status, and owned objects when their
// generation changes. HPAs have none, so only their creation and deletion count.
func (r *reconciler) register(manager ctrl.Manager) error {
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(manager).
		Named("mesh-"+component{kind: r.kind}.suffix()).
		For(object(r.kind)).
		Owns(&appsv1.StatefulSet{}, generation).
		Owns(&autoscalingv2.HorizontalPodAutoscaler{}, generation).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of kind %s: %w", r.kind, err)
	}
	return nil
}

func object(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(GroupVersion().WithKind(kind))
	return o
}

// Reconcile observes, writes the status, writes differences, and sets the observed generation, in the order of Function
// Mesh. Its status writes cause the next reconcile.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.paused.Load() {
		return ctrl.Result{RequeueAfter: retryPaused}, nil
	}
	object := object(r.kind)
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.changed(request.NamespacedName, nil)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	c, err := decode(object)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.changed(request.NamespacedName, c.spec.Replicas)
	if !c.managed {
		return ctrl.Result{}, nil
	}
	err = r.sync(ctx, object, c)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: retryStale}, nil // the cache lags behind the last write
	}
	return ctrl.Result{}, err
}

func (r *reconciler) sync(ctx context.Context, object *unstructured.Unstructured, c component) error {
	want, err := c.wanted(object)
	if err != nil {
		return err
	}
	live, err := r.gather(ctx, c)
	if err != nil {
		return err
	}
	now, err := readStatus(object)
	if err != nil {
		return err
	}
	next := observe(now, live, want)
	if err := r.writeStatus(ctx, object, now, next); err != nil {
		return err
	}
	edited := object.GetGeneration() != now.ObservedGeneration
	if err := r.apply(ctx, live, want, due(next.Conditions, edited)); err != nil {
		return fmt.Errorf("applying %s %s/%s: %w", c.kind, c.namespace, c.name, err)
	}
	if err := r.deleteNamesake(ctx, c); err != nil {
		return err
	}
	confirmed := next
	confirmed.ObservedGeneration = object.GetGeneration()
	return r.writeStatus(ctx, object, next, confirmed)
}

// wanted returns the objects that the component should own.
func (c component) wanted(owner *unstructured.Unstructured) (owned, error) {
	reference := *metav1.NewControllerRef(owner, GroupVersion().WithKind(c.kind))
	set, err := c.statefulSet(reference)
	if err != nil {
		return owned{}, err
	}
	want := owned{statefulSet: set}
	if c.spec.MaxReplicas != nil {
		want.hpa = c.hpa(reference)
	}
	return want, nil
}

func (r *reconciler) gather(ctx context.Context, c component) (live owned, err error) {
	if live.statefulSet, err = read(ctx, r.client, c.namespace, c.child(), &appsv1.StatefulSet{}); err != nil {
		return owned{}, err
	}
	live.hpa, err = read(ctx, r.client, c.namespace, c.child(), &autoscalingv2.HorizontalPodAutoscaler{})
	return live, err
}

// read returns the zero T, which is nil, if the object does not exist.
func read[T client.Object](ctx context.Context, c client.Client, namespace, name string, into T) (T, error) {
	var none T
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %s/%s: %w", into, namespace, name, err)
	}
	return into, nil
}

func (r *reconciler) writeStatus(ctx context.Context, object *unstructured.Unstructured, old, s status) error {
	if equality.Semantic.DeepEqual(old, s) {
		return nil
	}
	if err := writeStatus(object, s); err != nil {
		return err
	}
	if err := r.client.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", r.kind, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// due returns whether to write a part: missing and differing parts, and all parts at a new generation.
func due(found map[string]condition, edited bool) func(part string) bool {
	return func(part string) bool {
		return edited || !found[part].done()
	}
}

func (r *reconciler) apply(ctx context.Context, live, want owned, due func(part string) bool) error {
	var failures []error
	if due(partStatefulSet) {
		failures = append(failures, r.applyStatefulSet(ctx, live.statefulSet, want.statefulSet))
	}
	if want.hpa != nil && due(partHPA) {
		failures = append(failures, r.applyHPA(ctx, live.hpa, want.hpa))
	}
	return errors.Join(failures...)
}

func (r *reconciler) applyStatefulSet(ctx context.Context, live, want *appsv1.StatefulSet) error {
	if live == nil {
		return r.client.Create(ctx, want)
	}
	live = live.DeepCopy()
	rewrite(live, want)
	return r.client.Update(ctx, live)
}

// applyHPA overwrites the spec of an HPA of that name with any owner, and does not adopt it.
func (r *reconciler) applyHPA(ctx context.Context, live, want *autoscalingv2.HorizontalPodAutoscaler) error {
	if live == nil {
		return r.client.Create(ctx, want)
	}
	live = live.DeepCopy()
	live.Spec = want.Spec
	return r.client.Update(ctx, live)
}

// deleteNamesake imitates a bug in Function Mesh's deleteHPA (controllers/common.go): without maxReplicas it deletes
// the HPA with the name of the CR and any owner, and keeps its own.
func (r *reconciler) deleteNamesake(ctx context.Context, c component) error {
	if c.spec.MaxReplicas != nil {
		return nil
	}
	hpa, err := read(ctx, r.client, c.namespace, c.name, &autoscalingv2.HorizontalPodAutoscaler{})
	if err != nil || hpa == nil {
		return err
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, hpa))
}

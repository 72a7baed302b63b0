// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// meshDelay is the delay between an event and the reconcile of a mesh: the real operator reset a scaled child after 22
// to 110 ms, late enough for its StatefulSet to create pods.
const meshDelay = 20 * time.Millisecond

// Mesh returns a FunctionMesh with the specs of Functions, as Function returns them, as named entries.
func Mesh(namespace, name string, functions ...*unstructured.Unstructured) *unstructured.Unstructured {
	m := object(KindMesh)
	m.SetNamespace(namespace)
	m.SetName(name)
	entries := make([]any, 0, len(functions))
	for _, f := range functions {
		entry, _ := f.DeepCopy().Object["spec"].(map[string]any)
		entry["name"] = f.GetName()
		entries = append(entries, entry)
	}
	m.Object["spec"] = map[string]any{"functions": entries}
	return m
}

// meshReconciler turns FunctionMeshes into Functions, Sinks and Sources, as controllers/function_mesh.go does.
type meshReconciler struct {
	client client.Client
	paused *atomic.Bool

	// mu guards passes.
	mu     sync.Mutex
	passes map[client.ObjectKey]int
}

// register watches the meshes and their children, including status changes.
func (r *meshReconciler) register(manager ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(manager).Named("mesh-functionmesh").
		Watches(object(KindMesh), late(func(o client.Object) string { return o.GetName() }))
	for _, kind := range componentKinds() {
		b = b.Watches(object(kind), late(func(o client.Object) string {
			if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == KindMesh {
				return owner.Name
			}
			return ""
		}))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("registering the controller of kind %s: %w", KindMesh, err)
	}
	return nil
}

// componentKinds are in the order in which a FunctionMesh reconciles its entries.
//
// Source: Function Mesh's UpdateFunctionMesh (controllers/function_mesh.go).
func componentKinds() []string { return []string{KindFunction, KindSource, KindSink} }

// late enqueues the mesh of that name in the object's namespace.
func late(mesh func(client.Object) string) handler.EventHandler {
	add := func(o client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if name := mesh(o); name != "" {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}},
				meshDelay)
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

// Reconcile writes every entry over its child, deletes children without an entry, and sets the observed generation. It
// ends at the first child that fails, so that later children stay as they are, and retries with a backoff.
func (r *meshReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.paused.Load() {
		return ctrl.Result{RequeueAfter: retryPaused}, nil
	}
	mesh := object(KindMesh)
	if err := r.client.Get(ctx, request.NamespacedName, mesh); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if mesh.GetDeletionTimestamp() != nil || mesh.GetAnnotations()[annotationManaged] == "false" {
		return ctrl.Result{}, nil
	}
	r.mu.Lock()
	r.passes[request.NamespacedName]++
	r.mu.Unlock()
	err := r.sync(ctx, mesh)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: retryStale}, nil // the cache lags behind the last write
	}
	return ctrl.Result{}, err
}

func (r *meshReconciler) sync(ctx context.Context, mesh *unstructured.Unstructured) error {
	status := map[string]any{"observedGeneration": mesh.GetGeneration()}
	for _, kind := range componentKinds() {
		wanted, err := children(mesh, kind)
		if err != nil {
			return err
		}
		found := map[string]any{}
		for _, child := range wanted {
			name, _, _ := unstructured.NestedString(child.Object, "spec", "name")
			if found[name], err = r.write(ctx, mesh, child); err != nil {
				return err
			}
		}
		if err := r.deleteOthers(ctx, mesh, kind, wanted); err != nil {
			return err
		}
		status[strings.ToLower(kind)+"Conditions"] = found
	}
	if now, _, _ := unstructured.NestedMap(mesh.Object, "status"); equality.Semantic.DeepEqual(now, status) {
		return nil
	}
	mesh = mesh.DeepCopy()
	mesh.Object["status"] = status
	if err := r.client.Status().Update(ctx, mesh); err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", KindMesh, client.ObjectKeyFromObject(mesh), err)
	}
	return nil
}

// children returns the mesh's children of a kind. An entry without replicas has one: the child's webhook sets it at
// each write.
func children(mesh *unstructured.Unstructured, kind string) ([]*unstructured.Unstructured, error) {
	entries, _, err := unstructured.NestedSlice(mesh.Object, "spec", component{kind: kind}.suffix()+"s")
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", KindMesh, client.ObjectKeyFromObject(mesh), err)
	}
	var all []*unstructured.Unstructured
	for _, entry := range entries {
		fields, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("reading %s %s: an entry is %T", KindMesh, client.ObjectKeyFromObject(mesh), entry)
		}
		if fields["replicas"] == nil {
			fields["replicas"] = int64(1)
		}
		child := object(kind)
		child.SetNamespace(mesh.GetNamespace())
		child.SetName(fmt.Sprintf("%s-%s", mesh.GetName(), fields["name"]))
		child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(mesh, GroupVersion().WithKind(KindMesh))})
		child.Object["spec"] = fields
		all = append(all, child)
	}
	return all, nil
}

// write writes the entry over the child, and returns the child's condition in the mesh's status. With maxReplicas it
// skips a child with an up-to-date StatefulSet that knows this generation of the mesh: Function Mesh's HPA scales it.
func (r *meshReconciler) write(ctx context.Context, mesh, want *unstructured.Unstructured) (map[string]any, error) {
	live, err := read(ctx, r.client, want.GetNamespace(), want.GetName(), object(want.GetKind()))
	switch {
	case err != nil:
		return nil, err
	case live == nil:
		if err := r.client.Create(ctx, want); err != nil {
			return nil, fmt.Errorf("creating %s %s: %w", want.GetKind(), want.GetName(), err)
		}
		return condensed(actionCreate)
	}
	now, err := readStatus(live)
	if err != nil {
		return nil, err
	}
	observed, _, _ := unstructured.NestedInt64(mesh.Object, "status", "observedGeneration")
	_, hasMax, _ := unstructured.NestedInt64(want.Object, "spec", "maxReplicas")
	if hasMax && observed == mesh.GetGeneration() && now.Conditions[partStatefulSet].done() {
		return condensed(actionNone)
	}
	next := live.DeepCopy()
	next.Object["spec"] = want.Object["spec"]
	next.SetOwnerReferences(want.GetOwnerReferences())
	if _, set, _ := unstructured.NestedFieldNoCopy(want.Object, "spec", "minReplicas"); !set {
		_ = unstructured.SetNestedField(next.Object, int64(1), "spec", "minReplicas") // the definition's default
	}
	if !equality.Semantic.DeepEqual(live.Object, next.Object) {
		if err := r.client.Update(ctx, next); err != nil {
			return nil, fmt.Errorf("writing over %s %s: %w", want.GetKind(), want.GetName(), err)
		}
	}
	if !now.Conditions[partStatefulSet].done() {
		return condensed(actionWait)
	}
	return condensed(actionNone)
}

func condensed(action string) (map[string]any, error) {
	c := report("Ready", action)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return nil, fmt.Errorf("writing a condition: %w", err)
	}
	return fields, nil
}

// deleteOthers deletes children without an entry.
func (r *meshReconciler) deleteOthers(ctx context.Context, mesh *unstructured.Unstructured, kind string,
	wanted []*unstructured.Unstructured,
) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GroupVersion().WithKind(kind + "List"))
	if err := r.client.List(ctx, list, client.InNamespace(mesh.GetNamespace())); err != nil {
		return fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	keep := map[string]bool{}
	for _, child := range wanted {
		keep[child.GetName()] = true
	}
	for i := range list.Items {
		child := &list.Items[i]
		if keep[child.GetName()] || !metav1.IsControlledBy(child, mesh) {
			continue
		}
		if err := r.client.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", kind, child.GetName(), err)
		}
	}
	return nil
}

// MeshPasses counts the reconciles of the FunctionMesh. Each writes over its children.
func (o *Operator) MeshPasses(namespace, name string) int {
	o.meshes.mu.Lock()
	defer o.meshes.mu.Unlock()
	return o.meshes.passes[client.ObjectKey{Namespace: namespace, Name: name}]
}

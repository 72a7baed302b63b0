// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Cached is an object as Transform keeps it in the cache: the fields that are read, decoded once. It must not be
// modified, and cannot be written.
type Cached struct {
	untyped
	metav1.TypeMeta
	// ObjectMeta has no fields that are not read; Labels only of objects that are selected by them.
	metav1.ObjectMeta

	// invalid is why the object does not have the form of its kind; then fields below may be missing.
	invalid error
	// observed is status.observedGeneration.
	observed int64
	// One of these is set, by the kind.
	workload   *workload
	entries    map[string][]MeshEntry
	pods       *pods
	autoscaler *autoscaler
}

// CachedList is a list of them.
type CachedList struct {
	untyped
	metav1.TypeMeta
	metav1.ListMeta

	Items []Cached `json:"items"`
}

// NewCached is an empty object of the kind to read into. The cache has to watch the kind already, by cluster.NewObject:
// watches compare the Go type of an object with the one that is given first, before Transform.
func NewCached(kind string) *Cached {
	c := &Cached{}
	c.SetGroupVersionKind(cluster.GVK(kind))
	return c
}

// Decode reads the fields of an object that Cached has.
func Decode(u *unstructured.Unstructured) *Cached {
	c := &Cached{
		TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()},
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
			Generation: u.GetGeneration(), DeletionTimestamp: u.GetDeletionTimestamp(), Labels: u.GetLabels(),
			Annotations: keptAnnotations(u.GetAnnotations()), OwnerReferences: u.GetOwnerReferences(),
		},
	}
	c.observed, _, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if err := decode(c, u.Object); err != nil {
		c.invalid = fmt.Errorf("decoding %s: %w", c.Kind, err)
	}
	return c
}

func decode(c *Cached, object map[string]any) error {
	switch c.Kind {
	case cluster.KindFunctionMesh:
		c.entries = decodeEntries(object)
		return nil
	case cluster.KindStatefulSet, cluster.KindDeployment:
		return decodePods(c, object)
	case cluster.KindScaledObject, cluster.KindVerticalPodAutoscaler, cluster.KindAutoscaler:
		return decodeAutoscaler(c, object)
	default:
		return decodeWorkload(c, object)
	}
}

// keptAnnotations are those that are read; nil for none.
func keptAnnotations(all map[string]string) map[string]string {
	read := []string{
		cluster.AnnotationManaged, cluster.AnnotationPauseRollout, plan.AnnotationPaused, plan.AnnotationPausedAt,
		plan.AnnotationPausedIn, plan.AnnotationPausedOut, plan.AnnotationForced, plan.AnnotationPausedBy,
	}
	maps.DeleteFunc(all, func(key, _ string) bool { return !slices.Contains(read, key) })
	if len(all) == 0 {
		return nil
	}
	return maps.Clone(all)
}

// Invalid is why the object does not have the form of its kind; nil if it has.
func (c *Cached) Invalid() error { return c.invalid }

// Rollout is the change of its pods: pending for a Function, running for a StatefulSet; empty for none.
func (c *Cached) Rollout() string {
	switch {
	case c.workload != nil && c.workload.pendingChange:
		return "pending"
	case c.pods != nil:
		return c.pods.next
	default:
		return ""
	}
}

// Replicas of the spec; those of its target for a HorizontalPodAutoscaler. Nil if they are unknown.
func (c *Cached) Replicas() *int32 {
	switch {
	case c.workload != nil:
		return c.workload.Replicas
	case c.pods != nil:
		return c.pods.replicas
	case c.autoscaler != nil:
		return c.autoscaler.replicas
	default:
		return nil
	}
}

// UnmarshalJSON decodes what an API server sends.
func (c *Cached) UnmarshalJSON(text []byte) error {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return err
	}
	*c = *Decode(u)
	return nil
}

var errPartial = errors.New("an object of the cache has not all of its fields: write no such object")

// MarshalJSON fails.
func (*Cached) MarshalJSON() ([]byte, error) { return nil, errPartial }

// DeepCopyObject is shallow.
func (c *Cached) DeepCopyObject() runtime.Object { copied := *c; return &copied }

// DeepCopyObject is shallow.
func (l *CachedList) DeepCopyObject() runtime.Object {
	return &CachedList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta, Items: slices.Clone(l.Items)}
}

// untyped makes a runtime.Unstructured, which the cache finds by its kind: kinds of Function Mesh and KEDA are in no
// scheme, and one object that has another form must not fail the list of all.
type untyped struct{}

func (untyped) NewEmptyInstance() runtime.Unstructured                 { return &Cached{} }
func (untyped) UnstructuredContent() map[string]any                    { return map[string]any{} }
func (untyped) SetUnstructuredContent(map[string]any)                  {}
func (untyped) IsList() bool                                           { return false }
func (untyped) EachListItem(func(runtime.Object) error) error          { return errPartial }
func (untyped) EachListItemWithAlloc(func(runtime.Object) error) error { return errPartial }

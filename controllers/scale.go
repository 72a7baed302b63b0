// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// scale writes a number of replicas to a target.
func (a applier) scale(ctx context.Context, subject plan.Subject, replicas int32) error {
	var err error
	switch subject.Target.Scaling {
	case plan.ByWorker:
		return a.updateWorker(ctx, subject, replicas) // counted once the worker has answered
	case plan.ByMesh:
		err = a.scaleEntry(ctx, subject, replicas)
	default: // plan.BySubresource
		err = a.patchScale(ctx, subject, replicas)
	}
	return a.metrics.scaled(ctx, subject, replicas, err)
}

// scaled counts and logs a write, and says what failed.
func (m *controllerMetrics) scaled(ctx context.Context, subject plan.Subject, replicas int32, err error) error {
	if err != nil {
		m.scales.WithLabelValues("error").Inc()
		return fmt.Errorf("scaling %s to %d: %w", plan.Name(subject.Policy.Spec), replicas, err)
	}
	m.scales.WithLabelValues("scaled").Inc()
	log.FromContext(ctx).Info("target scaled", "target", plan.ShortName(subject.Policy.Spec), "from",
		*subject.Target.Replicas, "to", replicas)
	return nil
}

func (a applier) patchScale(ctx context.Context, subject plan.Subject, replicas int32) error {
	ref := subject.Target.Ref
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	object.SetNamespace(subject.Policy.Namespace)
	object.SetName(ref.Name)
	a.targets.Finder.Rewritten(subject.Policy.Namespace, ref)
	err := a.client.SubResource("scale").Patch(ctx, object, replicasPatch(replicas),
		client.FieldOwner(plan.FieldManager))
	if apierrors.IsForbidden(err) {
		kind := object.GroupVersionKind()
		if mapping, unmapped := a.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); unmapped == nil {
			return fmt.Errorf("%w: %s", err, target.GrantScale(mapping.Resource.GroupResource()))
		}
	}
	return err
}

// namingGrant adds to a forbidden patch of a kind what grants it.
func namingGrant(err error, kind string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	value, file := "rbac.takeOver", "takeover"
	if kind == cluster.KindFunctionMesh {
		value, file = "rbac.functionMeshes", "functionmeshes"
	}
	return fmt.Errorf("%w: set %s=true of the chart, or apply deploy/rbac/%s.yaml", err, value, file)
}

func replicasPatch(replicas int32) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
}

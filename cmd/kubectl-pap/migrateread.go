// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// inventory reads what scales today.
type inventory struct {
	kube client.Reader
	// namespace is empty for all.
	namespace string
}

// read returns the autoscalers that --from names, and what their translation needs.
func (i inventory) read(ctx context.Context, from string) (migrate.Input, error) {
	in := migrate.Input{MaxReplicas: from == fromAll || from == fromFunctionMesh}
	var err error
	for _, kind := range append(cluster.WorkloadKinds(), cluster.KindFunctionMesh) {
		found, err := i.objects(ctx, kind)
		if err != nil {
			return in, err
		}
		in.Components = append(in.Components, found...)
	}
	for _, kind := range []string{cluster.KindStatefulSet, cluster.KindDeployment} {
		found, err := i.objects(ctx, kind)
		if err != nil {
			return in, err
		}
		in.Workloads = append(in.Workloads, found...)
	}
	if from == fromAll || from == fromKEDA {
		if in.ScaledObjects, err = i.objects(ctx, cluster.KindScaledObject); err != nil {
			return in, err
		}
	}
	if from == fromAll || from == fromHPA {
		var found autoscalingv2.HorizontalPodAutoscalerList
		if err := i.list(ctx, "horizontalpodautoscalers", &found); err != nil {
			return in, err
		}
		in.Autoscalers = found.Items
	}
	in.Selectables = selectables(slices.Concat(in.Components, in.Workloads))
	var policies v1alpha1.AutoscalingPolicyList
	if err := i.list(ctx, "autoscalingpolicies", &policies); err != nil {
		return in, err
	}
	in.Policies = policies.Items
	return in, nil
}

// selectables are what an AutoscalingPolicySet may select, by namespace.
func selectables(objects []unstructured.Unstructured) map[string][]set.Selectable {
	found := map[string][]set.Selectable{}
	for i := range objects {
		if object := &objects[i]; object.GetKind() != cluster.KindDeployment {
			found[object.GetNamespace()] = append(found[object.GetNamespace()], target.Selectables(object)...)
		}
	}
	return found
}

// objects of a kind; none where it is not installed.
func (i inventory) objects(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	found := cluster.NewUnstructuredList(kind)
	err := i.list(ctx, kind+"s", found)
	return found.Items, err
}

func (i inventory) list(ctx context.Context, what string, found client.ObjectList) error {
	err := i.kube.List(ctx, found, client.InNamespace(i.namespace))
	switch {
	case err == nil || meta.IsNoMatchError(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("listing %s: %w: let a ClusterRole allow it to your user (kubectl pap migrate --help has all "+
			"permissions)", what, err)
	default:
		return fmt.Errorf("listing %s: %w", what, err)
	}
}

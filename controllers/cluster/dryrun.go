// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const dryRunTimeout = 5 * time.Second

// creator creates objects. It must not wait until the cache has them: a dry run creates none.
type creator interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

// keepsTolerance makes a dry run, which creates no object: it reports whether the API server keeps the tolerance of a
// policy's HorizontalPodAutoscaler (feature gate HPAConfigurableTolerance, on by default since 1.35). Without it the
// HPA ignores changes of up to 10 %.
func keepsTolerance(ctx context.Context, server creator, namespace string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	p := &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
		Spec:       v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{MaxReplicas: 1}},
	}
	target := &plan.Target{Ref: v1alpha1.ScaleTargetRef{
		APIVersion: WorkloadGVK(KindFunction).GroupVersion().String(), Kind: KindFunction, Name: "probe",
	}}
	hpa := plan.HorizontalPodAutoscaler(p, target)
	hpa.Name, hpa.GenerateName, hpa.OwnerReferences = "", "pap-probe-", nil
	if err := server.Create(ctx, hpa, client.DryRunAll, client.FieldOwner(plan.FieldManager)); err != nil {
		return false, fmt.Errorf("creating a HorizontalPodAutoscaler in namespace %s as a dry run: %w", namespace, err)
	}
	return plan.ToleranceHonoured(hpa), nil
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// dryRunTimeout bounds one dry run.
const dryRunTimeout = 5 * time.Second

// autoscalerCapabilities are the fields of our HorizontalPodAutoscalers that the API server keeps.
type autoscalerCapabilities struct {
	// scaleToZero: it accepts minReplicas 0 (feature gate HPAScaleToZero, on by default since 1.37).
	scaleToZero bool
	// tolerance: it keeps the tolerance (HPAConfigurableTolerance, on by default since 1.35). Without it the HPA ignores
	// changes of up to 10 %.
	tolerance bool
}

// creator creates objects. It must not wait until the cache has them: a dry run creates none.
type creator interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

// probeAutoscaler makes a dry run, which creates no object. No request shows what kube-controller-manager does; it has
// the same feature gates as the API server unless an administrator set them apart.
func probeAutoscaler(ctx context.Context, server creator, namespace string) (autoscalerCapabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	kept, err := dryRun(ctx, server, namespace, true)
	if refusesMinReplicas(err) {
		kept, err = dryRun(ctx, server, namespace, false)
	}
	if err != nil {
		return autoscalerCapabilities{},
			fmt.Errorf("creating a HorizontalPodAutoscaler in namespace %s as a dry run: %w", namespace, err)
	}
	return autoscalerCapabilities{
		scaleToZero: kept.Spec.MinReplicas != nil &&
			*kept.Spec.MinReplicas == 0, tolerance: plan.ToleranceHonoured(kept),
	}, nil
}

// dryRun returns what the API server would keep of a policy's HorizontalPodAutoscaler.
func dryRun(ctx context.Context, server creator, namespace string, toZero bool) (*autoscalingv2.HorizontalPodAutoscaler,
	error,
) {
	p := &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
		Spec: v1alpha1.AutoscalingPolicySpec{
			ScalingSpec: v1alpha1.ScalingSpec{MinReplicas: new(int32), MaxReplicas: 1},
		},
	}
	target := &plan.Target{Ref: v1alpha1.ScaleTargetRef{
		APIVersion: WorkloadGVK(KindFunction).GroupVersion().String(), Kind: KindFunction, Name: "probe",
	}}
	hpa, err := plan.DecodeAutoscaler(plan.HorizontalPodAutoscaler(p, target, plan.Capabilities{ScaleToZero: toZero}))
	if err != nil {
		return nil, err
	}
	hpa.Name, hpa.GenerateName, hpa.OwnerReferences = "", "pap-probe-", nil
	err = server.Create(ctx, hpa, client.DryRunAll, client.FieldOwner(plan.FieldManager))
	return hpa, err
}

// refusesMinReplicas reports whether the API server rejects minReplicas, and not another field.
func refusesMinReplicas(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "spec.minReplicas" {
			return true
		}
	}
	return false
}

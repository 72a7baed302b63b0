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

// autoscalerCapabilities are what the API server makes of a HorizontalPodAutoscaler of ours.
type autoscalerCapabilities struct {
	// scaleToZero says that it takes minReplicas 0 (feature gate HPAScaleToZero, on by default since 1.37).
	scaleToZero bool
	// tolerance says that it keeps the tolerance (HPAConfigurableTolerance, on by default since 1.35), without which
	// changes of up to 10 % are ignored.
	tolerance bool
}

// creator creates objects. It must not wait to see them again, for a dry run leaves none.
type creator interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

// probeAutoscaler asks by a dry run, which leaves nothing behind. What kube-controller-manager makes of it cannot be
// asked; it has the same feature gates in every cluster that was not put together by hand.
func probeAutoscaler(ctx context.Context, server creator, namespace string) (autoscalerCapabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	answer, err := dryRun(ctx, server, namespace, true)
	if refusesMinReplicas(err) {
		answer, err = dryRun(ctx, server, namespace, false)
	}
	if err != nil {
		return autoscalerCapabilities{},
			fmt.Errorf("creating a HorizontalPodAutoscaler in namespace %s as a dry run: %w", namespace, err)
	}
	return autoscalerCapabilities{
		scaleToZero: answer.Spec.MinReplicas != nil &&
			*answer.Spec.MinReplicas == 0, tolerance: plan.ToleranceHonoured(answer),
	}, nil
}

// dryRun returns what the API server would keep of what we apply for a policy.
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

// refusesMinReplicas says that the API server finds fault with minReplicas, and not with something else.
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

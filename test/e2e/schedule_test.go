// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestAScheduleLimitsWhatTheAutoscalerMaySet(t *testing.T) {
	t.Parallel()
	f := addFunction(t, stage.FunctionConfig{Name: "scheduled", ServiceTime: 25 * time.Millisecond})
	cron := func(at time.Time) v1alpha1.CronExpression {
		return v1alpha1.CronExpression(fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()))
	}
	now, p := time.Now().UTC(), newPolicy(f.Name)
	p.Spec.Schedules = []v1alpha1.Schedule{{
		Name: "now", Start: cron(now.Add(-time.Hour)), End: cron(now.Add(12 * time.Hour)), MinReplicas: new(int32(3)),
	}}
	addPolicy(t, p)
	f.AwaitReplicas(t, 3, 3)
	least := func(want int32) {
		f.Await(t, fmt.Sprintf("the HPA to have minReplicas %d", want), func(ctx context.Context) (bool, string, error) {
			hpa, err := f.Autoscaler(ctx)
			if hpa == nil || err != nil {
				return false, "no HPA", err
			}
			return *hpa.Spec.MinReplicas == want, fmt.Sprint(*hpa.Spec.MinReplicas), nil
		})
	}
	least(3)
	want := &v1alpha1.Limits{MinReplicas: 3, MaxReplicas: 20, Schedules: []v1alpha1.ScheduleName{"now"}}
	p = f.AwaitPolicy(t, fmt.Sprintf("limits %+v", want), func(p *v1alpha1.AutoscalingPolicy) bool {
		return reflect.DeepEqual(want, p.Status.Limits)
	})

	before := p.DeepCopy()
	p.Spec.Schedules = nil
	require.NoError(t, scene.Client.Patch(t.Context(), p, client.MergeFrom(before)))
	least(1)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// awaitAlert waits until an alert about the Function's policy fires, or no longer fires.
func awaitAlert(t *testing.T, f *stage.Function, name string, fires bool) {
	t.Helper()
	server := observed(t)
	f.Await(t, fmt.Sprintf("alert %s to fire: %t", name, fires), func(ctx context.Context) (bool, string, error) {
		firing, err := server.Firing(ctx)
		if err != nil {
			return false, "", err
		}
		found := false
		var names []model.LabelSet
		for _, alert := range firing {
			names = append(names, alert.Labels)
			found = found || string(alert.Labels["alertname"]) == name && string(alert.Labels["policy"]) == f.Name
		}
		return found == fires, fmt.Sprint(names), nil
	})
}

func patchPolicy(t *testing.T, p *v1alpha1.AutoscalingPolicy, patch string) {
	t.Helper()
	require.NoError(t, scene.Client.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func TestObservabilityAlertsOfAPolicyAtItsMaximum(t *testing.T) {
	t.Parallel()
	const name = "alert-maximum"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond})
	p := newPolicy(name)
	p.Spec.MaxReplicas, p.Spec.LatencyObjective = 2, metav1.Duration{Duration: 5 * time.Second}
	addPolicy(t, p)
	publish(t, f, load.Constant(90)) // 25/s each
	awaitAlert(t, f, "PulsarAutoscalerAtMaximumAndLate", true)
	patchPolicy(t, p, `{"spec":{"maxReplicas":20}}`)
	awaitAlert(t, f, "PulsarAutoscalerAtMaximumAndLate", false)
	failed, err := observed(t).RuleErrors(t.Context())
	require.NoError(t, err)
	require.Empty(t, failed)
}

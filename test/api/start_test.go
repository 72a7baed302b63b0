// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestAStartHasBounds(t *testing.T) {
	tests := map[string]struct {
		change  func(*v1alpha1.ReplicaStart)
		refusal string // empty for none
	}{
		"all phases":        {func(*v1alpha1.ReplicaStart) {}, ""},
		"no replica":        {func(s *v1alpha1.ReplicaStart) { s.Replicas = 0 }, "should be greater than or equal to 1"},
		"too many replicas": {func(s *v1alpha1.ReplicaStart) { s.Replicas = 21 }, "should be less than or equal to 20"},
		"more than a start": {func(s *v1alpha1.ReplicaStart) { s.TotalSeconds = 601 }, "should be less than or equal to 600"},
		"a negative time": {
			func(s *v1alpha1.ReplicaStart) { s.ProgramSeconds = -1 },
			"should be greater than or equal to 0",
		},
	}
	onControlPlane(t)
	object := create(t, "start", functionPolicy(fields{"scaleTargetRef": meshTarget(nil)}))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			start := v1alpha1.ReplicaStart{
				MeasuredAt: metav1.Now(), Replicas: 20, TotalSeconds: 600, ProgramSeconds: 600,
			}
			tt.change(&start)
			err := patchStatus(t, object, func(status *v1alpha1.AutoscalingPolicyStatus) { status.Start = &start })
			if tt.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.refusal)
		})
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

func TestALateWatchRepeatsNoWrites(t *testing.T) {
	memory, now := &setMemory{}, time.Unix(1_800_000_000, 0)
	named := func(name, version string) v1alpha1.AutoscalingPolicy {
		return v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "uid-" + types.UID(name),
			ResourceVersion: version,
		}}
	}
	created, gone := named("created", "12"), named("gone", "3")
	actions := set.Actions{
		Apply: []set.PlannedPolicy{{Policy: &created}}, Delete: []*v1alpha1.AutoscalingPolicy{&gone},
	}
	tests := map[string]struct {
		cached []v1alpha1.AutoscalingPolicy
		later  time.Duration
		sees   bool
	}{
		"nothing arrived":                   {[]v1alpha1.AutoscalingPolicy{gone}, time.Second, false},
		"the new one arrived":               {[]v1alpha1.AutoscalingPolicy{gone, created}, time.Second, false},
		"an older version of it":            {[]v1alpha1.AutoscalingPolicy{named("created", "9")}, time.Second, false},
		"both arrived":                      {[]v1alpha1.AutoscalingPolicy{created}, time.Second, true},
		"and a newer version":               {[]v1alpha1.AutoscalingPolicy{named("created", "100")}, time.Second, true},
		"nothing arrived for half a minute": {nil, seenWithin, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			memory.wrote(actions, now)
			require.Equal(t, tt.sees, memory.sees(tt.cached, now.Add(tt.later)))
		})
	}
}

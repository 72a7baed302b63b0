// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Clients of Kubernetes reject a request that would exceed the deadline of its context.
func TestLastSampleIsDroppedIfItIsUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		unknown []int
		want    int
	}{
		"all are known":             {nil, 4},
		"the last is unknown":       {[]int{3}, 3},
		"one in between is unknown": {[]int{2}, 4},
		"the last two are unknown":  {[]int{2, 3}, 3},
		"all are unknown":           {[]int{0, 1, 2, 3}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*sampleEvery+sampleEvery/2)
				defer cancel()
				looks := 0
				samples := watch(ctx, func(context.Context) Sample {
					s := Sample{SpecReplicas: new(1)}
					for _, i := range test.unknown {
						if i == looks {
							s = Sample{Problem: "it would exceed the deadline"}
						}
					}
					looks++
					<-time.After(sampleEvery / 10)
					return s
				})
				require.Len(t, samples, test.want)
			})
		})
	}
}

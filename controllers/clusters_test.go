// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countingReader has every ConfigMap and counts how often one is read.
type countingReader struct {
	client.Reader
	reads int
}

func (r *countingReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	r.reads++
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("reading a %T", object)
	}
	configMap.Data = map[string]string{keyWebServiceURL: testCluster().AdminURL}
	return nil
}

func TestTenThousandConfigMapsAreReadOnceAMinute(t *testing.T) {
	reader := &countingReader{}
	now := time.Unix(1_800_000_000, 0)
	c := newClusters(reader, "", func() time.Time { return now })
	const many = 10_000
	for range 3 {
		for i := range many {
			cluster, invalid, err := c.find(t.Context(), nil, types.NamespacedName{Namespace: fmt.Sprintf("team-%d", i), Name: "pulsar"})
			require.NoError(t, err)
			require.Empty(t, invalid)
			require.Equal(t, testCluster(), cluster)
		}
		now = now.Add(10 * time.Second)
	}
	require.Equal(t, many, reader.reads)
}

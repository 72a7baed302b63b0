// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStatefulSetOfAWorkersFunctionHasPulsarsName(t *testing.T) {
	tests := map[string]struct{ tenant, namespace, name, want string }{
		"a plain name stays":              {"public", "default", "resize", "pf-public-default-resize"},
		"a dot may stay":                  {"public", "default", "v1.2", "pf-public-default-v1.2"},
		"capitals are hashed":             {"public", "default", "Resize", "pf-public-default-resize-2f7b03a9"},
		"what Kubernetes lacks is hashed": {"public", "default", "re_size", "pf-public-default-re-size-10f1b1e2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, workerStatefulSet(tt.tenant, tt.namespace, tt.name))
		})
	}
}

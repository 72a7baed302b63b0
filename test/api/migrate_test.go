// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheAPIServerTakesWhatMigrateWrites: the golden file is the output of kubectl pap migrate for ScaledObjects, HPAs
// and Functions.
func TestTheAPIServerTakesWhatMigrateWrites(t *testing.T) {
	onControlPlane(t)
	text, err := os.ReadFile(filepath.Join(root, "cmd", "kubectl-pap", "testdata", "migrate.yaml"))
	require.NoError(t, err)
	kinds := map[string]int{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		kind := read(t, document).Kind
		kinds[kind]++
		if kind != "" { // the steps are comments alone
			require.NoError(t, apply(t, document, true), document)
		}
	}
	require.Equal(t, map[string]int{"AutoscalingPolicy": 6, "AutoscalingPolicySet": 1, "": 1}, kinds)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestARestartKeepsWhatTakesLongToMeasure(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), capacityPolicy(), fixture.ConfigMap())
	env.firstDecision(10)
	known := env.reconciler.memories.byKey[fixture.Key()].resume
	known.Plateau = policy.Plateau{
		Stage: policy.Limited, Replicas: 4, Each: 10, Reference: policy.Output{Replicas: 8, Processed: 50},
		Since: env.now.UTC(), Pause: 20 * time.Minute,
	}
	require.Equal(t, []string{"patch status"}, env.reconcile(), "a ceiling is worth a write of its own")
	env.restart()
	env.reconcile()
	require.Equal(t, known.Plateau, env.reconciler.memories.byKey[fixture.Key()].resume.Plateau)
}

func TestAStateOfAnotherVersionIsLoggedOnceAndReadInPart(t *testing.T) {
	p := capacityPolicy()
	p.Status.WorkingCheckpoint = base64.StdEncoding.EncodeToString([]byte(
		`{"v":1000,"mood":"good","capacity":{"rate":10,"var":0.04}}`))
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	for range 3 {
		_, err := env.reconciler.Reconcile(
			log.IntoContext(t.Context(), logger),
			reconcile.Request{NamespacedName: fixture.Key()},
		)
		require.NoError(t, err)
	}
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "ignoring parts of status.workingCheckpoint")
	require.Contains(t, lines[0], "is not 1")
	require.InDelta(t, 10, env.reconciler.memories.byKey[fixture.Key()].resume.Capacity.MessagesPerSecond, 1e-9)
}

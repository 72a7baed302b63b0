// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the product on real parts: a real Pulsar broker, the real HPA controller behind a real API server
// and aggregator, and the adapter as a process with the rights of its manifests.
package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scene is set by the first test that calls onStage, for it takes longer than most tests and some need none.
var scene *stage.Stage

// The adapter and the HPA controller look more often than they ship, so that minutes become seconds; the decisions are
// the same.
const (
	pollInterval = time.Second
	staleAfter   = 8 * time.Second
	hpaSync      = 2 * time.Second
)

func TestMain(m *testing.M) { shared.Main(m, theStage, theGround, thePrometheus, thePlugin) }

var theStage = shared.New("a real broker and control plane", openStage, closeStage)

func openStage(ctx context.Context) (_ *stage.Stage, err error) {
	scene, err = stage.Open(ctx, stage.Config{
		HPASyncPeriod: hpaSync,
		AdapterFlags: []string{
			"--poll-interval=" + pollInterval.String(), "--rate-window=4s", "--stale-after=" + staleAfter.String(),
			"--allowed-pulsar-hosts=127.0.0.1", // brokers of single tests, and where nobody listens
			"--worker-update-interval=3s",
			"--pulsar-timeout=1s", "--external-metrics", "--policy-metrics=Full",
			// An adapter that cannot renew in time ends: so long is no hiccup of a busy machine.
			"--lease-duration=20s", "--lease-renew-deadline=15s", "--lease-retry-period=1s",
		},
		Guests: true, Progress: os.Stderr,
	})
	return scene, err
}

func closeStage(s *stage.Stage) error {
	s.Close()
	return nil
}

// onStage begins a test that needs the whole scene: Pulsar, Kubernetes and the adapter.
func onStage(t *testing.T) {
	t.Helper()
	theStage.Need(t)
}

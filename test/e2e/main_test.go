// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the product on real parts: a real Pulsar broker, the real HPA controller behind a real API server
// and aggregator, and the adapter as a process with the permissions of its manifests.
package e2e

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scene is started by the first test that calls onStage: it takes longer than most tests, and some need none.
var scene *stage.Stage

// The adapter polls and the HPA controller syncs more often than shipped, so that minutes become seconds. The decisions
// are the same.
const (
	pollInterval = time.Second
	staleAfter   = 8 * time.Second
	hpaSync      = 2 * time.Second
)

func TestMain(m *testing.M) {
	shared.Main(m, theStage, theShipped, theGround, thePrometheus, thePlugin)
}

var theStage = shared.New("a real broker and control plane", openStage, closeStage)

func openStage(ctx context.Context) (_ *stage.Stage, err error) {
	scene, err = stage.Open(ctx, stage.Config{
		HPASyncPeriod: hpaSync,
		AdapterFlags: slices.Concat(adapterFlags(), []string{
			"--allowed-pulsar-hosts=127.0.0.1", // brokers of single tests, and closed ports
			"--worker-update-interval=3s", "--pulsar-timeout=1s", "--external-metrics", "--policy-metrics=Full",
		}),
		Guests: true, Progress: os.Stderr,
	})
	return scene, err
}

// adapterFlags are those of all adapters here.
func adapterFlags() []string {
	return append(stage.PatientLease(), "--poll-interval="+pollInterval.String(), "--rate-window=4s",
		"--stale-after="+staleAfter.String())
}

func closeStage(s *stage.Stage) error {
	s.Close()
	return nil
}

// onStage starts a test that needs the whole stage: Pulsar, Kubernetes and the adapter.
func onStage(t *testing.T) {
	t.Helper()
	theStage.Need(t)
}

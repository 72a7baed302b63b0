// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the product on real parts: a real Pulsar broker, the real HPA controller behind a real API server
// and aggregator, and the adapter as a process with the rights of its manifests.
package e2e

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

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

// lifetime is that of the test process: what outlives a test, such as the stage, lives as long.
var lifetime context.Context //nolint:containedctx // TestMain has no other way to hand it to the tests

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lifetime = ctx
	defer func() {
		theGround.Close()
		if scene != nil {
			scene.Close()
		}
	}()
	return m.Run()
}

// openStage sets the scene once; a second call tells how the first one ended.
var openStage = sync.OnceValue(func() (err error) {
	scene, err = stage.Open(lifetime, stage.Config{
		HPASyncPeriod: hpaSync,
		AdapterFlags: []string{
			"--poll-interval=" + pollInterval.String(), "--rate-window=4s", "--stale-after=" + staleAfter.String(),
			"--allowed-pulsar-hosts=127.0.0.1", // brokers of single tests, and where nobody listens
			"--worker-update-interval=3s",
			"--pulsar-timeout=1s", "--external-metrics",
			// An adapter that cannot renew in time ends: so long is no hiccup of a busy machine.
			"--lease-duration=10s", "--lease-renew-deadline=8s", "--lease-retry-period=1s",
		},
		Progress: os.Stderr,
	})
	return err
})

// onStage begins a test that needs the whole scene: Pulsar, Kubernetes and the adapter.
func onStage(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real broker and control plane")
	}
	require.NoError(t, openStage(), "setting the stage")
}

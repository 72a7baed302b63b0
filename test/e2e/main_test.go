// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the product on real parts: a real Pulsar broker, the real HPA controller behind a real API server
// and aggregator, and the adapter as a process with the rights of its manifests.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scene is set once for all tests of the package, for it takes longer than most of them.
var scene *stage.Stage

// The adapter and the HPA controller look more often than they ship, so that minutes become seconds; the decisions are
// the same.
const (
	pollInterval = time.Second
	staleAfter   = 8 * time.Second
	hpaSync      = 2 * time.Second
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	if testing.Short() {
		return m.Run() // every test skips itself, and says so
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	scene, err = stage.Open(ctx, stage.Config{
		HPASyncPeriod: hpaSync,
		AdapterFlags: []string{
			"--poll-interval=" + pollInterval.String(), "--rate-window=4s", "--stale-after=" + staleAfter.String(),
			"--allowed-pulsar-hosts=127.0.0.1:1", // where nobody listens
			"--pulsar-timeout=1s", "--lease-duration=5s", "--lease-renew-deadline=4s", "--lease-retry-period=1s",
		},
		Progress: os.Stderr,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "setting the stage:", err)
		return 1
	}
	defer scene.Close()
	return m.Run()
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scene is the one stage of this package's tests; set by openStage.
var scene *stage.Stage

// How fast the parts look at each other, so that tests take seconds; HPAs of real clusters look every 15 s.
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
	if !testing.Short() {
		// The builds take longer than tests may.
		_, err := cluster.Binaries(ctx, os.Stderr)
		_, errKEDA := cluster.KEDABinaries(ctx, os.Stderr)
		if err := errors.Join(err, errKEDA); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	defer func() {
		if scene != nil {
			scene.Close()
		}
	}()
	return m.Run()
}

// openStage sets the scene once; a second call tells how the first one ended.
var openStage = sync.OnceValue(func() (err error) {
	measuring := []string{
		"--poll-interval=" + pollInterval.String(), "--rate-window=4s", "--stale-after=" +
			staleAfter.String(), "--pulsar-timeout=1s",
	}
	scene, err = stage.Open(lifetime, stage.Config{
		HPASyncPeriod: hpaSync,
		AdapterFlags: append([]string{"--lease-duration=10s", "--lease-renew-deadline=8s", "--lease-retry-period=1s"},
			measuring...),
		ScalerFlags: append([]string{"--hold-for=5m"}, measuring...),
		// KEDA's own limit of 20 requests a second is what 20 ScaledObjects that are polled every 2 s need.
		KEDA:     &keda.Config{OperatorFlags: []string{"--kube-api-qps=100", "--kube-api-burst=200"}},
		Progress: os.Stderr,
	})
	return err
})

// onStage begins a test that needs the whole scene.
func onStage(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real broker, a control plane and KEDA")
	}
	require.NoError(t, openStage(), "setting the stage")
}

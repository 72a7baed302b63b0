// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

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

func TestMain(m *testing.M) { shared.MainAfter(m, build, theStage) }

func build(ctx context.Context) error {
	_, err := cluster.Binaries(ctx, os.Stderr)
	_, errKEDA := cluster.KEDABinaries(ctx, os.Stderr)
	return errors.Join(err, errKEDA)
}

var theStage = shared.New("a real broker, a control plane and KEDA", openStage, func(s *stage.Stage) error {
	s.Close()
	return nil
})

func openStage(ctx context.Context) (_ *stage.Stage, err error) {
	measuring := []string{
		"--poll-interval=" + pollInterval.String(), "--rate-window=4s", "--stale-after=" +
			staleAfter.String(), "--pulsar-timeout=1s",
	}
	scene, err = stage.Open(ctx, stage.Config{
		HPASyncPeriod: hpaSync,
		AdapterFlags: append([]string{"--lease-duration=20s", "--lease-renew-deadline=15s", "--lease-retry-period=1s"},
			measuring...),
		ScalerFlags: append([]string{"--hold-for=5m"}, measuring...),
		// KEDA's own limit of 20 requests a second is what 20 ScaledObjects that are polled every 2 s need.
		KEDA:     &keda.Config{OperatorFlags: []string{"--kube-api-qps=100", "--kube-api-burst=200"}},
		Progress: os.Stderr,
	})
	return scene, err
}

// onStage begins a test that needs the whole scene.
func onStage(t *testing.T) {
	t.Helper()
	theStage.Need(t)
}

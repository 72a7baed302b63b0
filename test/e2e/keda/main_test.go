// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scene is the stage of all tests of this package; openStage sets it.
var scene *stage.Stage

// Intervals of the parts, short so that tests take seconds; HPAs of real clusters sync every 15 s.
const (
	pollInterval = time.Second
	staleAfter   = 8 * time.Second
	hpaSync      = 2 * time.Second
)

func TestMain(m *testing.M) { shared.MainAfter(m, build, theStage) }

func build(ctx context.Context) error {
	_, err := binaries.BuildControlPlane(ctx, os.Stderr)
	_, errKEDA := binaries.BuildKEDA(ctx, os.Stderr)
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
		// An adapter that loses its Lease in a stall is not restarted. One that is killed keeps it for the duration.
		AdapterFlags: slices.Concat(measuring, []string{"--lease-duration=30s", "--lease-renew-deadline=25s"}),
		ScalerFlags:  append([]string{"--hold-for=5m"}, measuring...),
		// KEDA's limit of 20 requests a second is exhausted by 20 ScaledObjects that are polled every 2 s.
		KEDA:     &keda.Config{OperatorFlags: []string{"--kube-api-qps=100", "--kube-api-burst=200"}},
		Progress: os.Stderr,
	})
	return scene, err
}

// onStage starts a test that needs the whole stage.
func onStage(t *testing.T) {
	t.Helper()
	theStage.Need(t)
}

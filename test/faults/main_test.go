// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// serviceTime makes a replica process 10 messages a second, on a busy machine too, which adds little to a call of that
	// time; arriving is what arrives at each Function.
	serviceTime = 100 * time.Millisecond
	arriving    = 24
	maxReplicas = 40
	// needed replicas process what arrives: fewer never would.
	needed    = 3
	objective = 30 * time.Second
	// stale is when a reading is, and timeout how long one request may take.
	stale   = 6 * time.Second
	timeout = time.Second
	// rates are measured over rateWindow, and replicas removed after stabilization. Whatever an answer does shows within
	// both, a poll and a sync of the HorizontalPodAutoscaler.
	rateWindow, stabilization = 4 * time.Second, 5 * time.Second
	shows                     = rateWindow + stabilization + 2*time.Second
)

var theScene = shared.New("a real broker and control plane", openScene, (*scene).close)

// scene has the twin of all Functions that are read through a proxy.
type scene struct {
	*stage.Stage
	twin       *stage.Function
	stop       context.CancelFunc
	publishing errgroup.Group
}

func TestMain(m *testing.M) { shared.Main(m, theScene) }

func openScene(ctx context.Context) (_ *scene, err error) {
	s := &scene{}
	s.Stage, err = stage.Open(ctx, stage.Config{
		HPASyncPeriod: time.Second,
		AdapterFlags: append(stage.PatientLease(),
			"--policy-metrics=Full", "--poll-interval=1s", "--rate-window="+rateWindow.String(),
			"--stale-after="+stale.String(), "--pulsar-timeout="+timeout.String(), "--allowed-pulsar-hosts=127.0.0.1",
		),
		Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *scene) begin(ctx context.Context) (err error) {
	publishing, stop := context.WithCancel(ctx)
	s.stop = stop
	if s.twin, err = s.AddFunction(ctx, function("twin")); err != nil {
		return err
	}
	if err := s.Client.Create(ctx, policy("twin")); err != nil {
		return err
	}
	s.publishing.Go(func() error { return s.twin.Publish(publishing, load.Constant(arriving)) })
	return nil
}

func (s *scene) close() error {
	s.stop()
	_ = s.publishing.Wait() // it was told to end
	s.Close()
	return nil
}

func function(name string) stage.FunctionConfig {
	return stage.FunctionConfig{Name: name, ServiceTime: serviceTime, Replicas: 4}
}

func policy(name string) *v1alpha1.AutoscalingPolicy {
	p := stage.NewPolicy(name, 1, maxReplicas, objective)
	window := int32(stabilization.Seconds())
	p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &window}}
	return p
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	name = "kept"
	// replicas of the Function, of 2.5/s each, for calm messages per second: two could never drain a backlog, so every
	// decision is at least this, and the policy's maxReplicas is no more: what a machine that stalls publishes at once
	// changes nothing. What a busy machine adds to a call is little beside its service time.
	replicas    = 3
	calm        = 5
	serviceTime = 400 * time.Millisecond
	// leaseDuration of the leader election, and renewDeadline after which a holder that cannot renew ends: longer than a
	// busy machine stalls. The shipped values are 15 s and 10 s.
	leaseDuration, renewDeadline = 25 * time.Second, 20 * time.Second
	// staleAfter is the age at which a reading is stale.
	staleAfter = 20 * time.Second
)

var theScene = shared.New("a real broker and control plane", openScene, (*scene).close)

// scene is a Function under load with a policy, and two adapters.
type scene struct {
	*stage.Stage
	adapters   []*stage.Adapter
	function   *stage.Function
	stop       context.CancelFunc
	publishing errgroup.Group
}

func TestMain(m *testing.M) { shared.Main(m, theScene) }

func openScene(ctx context.Context) (_ *scene, err error) {
	s := &scene{}
	s.Stage, err = stage.Open(ctx, stage.Config{
		HPASyncPeriod: 2 * time.Second,
		AdapterFlags: []string{
			"--poll-interval=1s", "--rate-window=4s", "--stale-after=" + staleAfter.String(),
			"--lease-duration=" + leaseDuration.String(), "--lease-renew-deadline=" +
				renewDeadline.String(), "--lease-retry-period=1s",
		},
		Progress: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	s.adapters = []*stage.Adapter{s.Adapter}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *scene) begin(ctx context.Context) error {
	second, err := s.AddAdapter(ctx, "adapter-2")
	if err != nil {
		return err
	}
	s.adapters = append(s.adapters, second)
	return s.addFunction(ctx)
}

func (s *scene) addFunction(ctx context.Context) (err error) {
	s.function, err = s.AddFunction(ctx,
		stage.FunctionConfig{Name: name, ServiceTime: serviceTime, Replicas: replicas})
	if err != nil {
		return err
	}
	if err := s.Client.Create(ctx, stage.NewPolicy(name, 1, replicas, 30*time.Second)); err != nil {
		return err
	}
	return s.publish(ctx, calm)
}

// publish starts the load, or changes it.
func (s *scene) publish(ctx context.Context, perSecond float64) error {
	err := s.endLoad()
	publishing, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.publishing.Go(func() error { return s.function.Publish(publishing, load.Constant(perSecond)) })
	return err
}

func (s *scene) endLoad() error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	return s.publishing.Wait()
}

func (s *scene) close() error {
	for _, a := range s.adapters {
		a.Kill()
	}
	_ = s.endLoad() // it was told to end
	s.Close()
	return nil
}

// onScene returns the scene with both adapters running, one of them deciding, and the capacity learned.
func onScene(t *testing.T) *scene {
	t.Helper()
	s := theScene.Need(t)
	s.settle(t)
	return s
}

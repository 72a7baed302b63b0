// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	name = "kept"
	// replicas of the Function, of 25/s each, for calm messages per second: two could never catch up with what they
	// missed, so nothing that is known makes fewer of them right.
	replicas = 3
	calm     = 50
	// leaseDuration of the leader election, and renewDeadline after which a holder that cannot renew ends: so long is no
	// hiccup of a busy machine. It ships with 15 s and 10 s.
	leaseDuration, renewDeadline = 10 * time.Second, 8 * time.Second
	// patience bounds every wait: a machine may be busy.
	patience = time.Minute
)

// theScene is set by the first test that calls onScene.
var theScene *scene

// lifetime is that of the test process, which the stage shares.
var lifetime context.Context //nolint:containedctx // TestMain has no other way to hand it to the tests

// scene is a Function under load with a policy, and two adapters.
type scene struct {
	*stage.Stage
	adapters []*stage.Adapter
	function *stage.Function
	// perSecond is the load.
	perSecond  atomic.Int64
	stop       context.CancelFunc
	publishing errgroup.Group
}

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
		if theScene != nil {
			theScene.close()
		}
	}()
	return m.Run()
}

var openScene = sync.OnceValue(func() (err error) {
	s := &scene{}
	s.Stage, err = stage.Open(lifetime, stage.Config{
		HPASyncPeriod: 2 * time.Second,
		AdapterFlags: []string{
			"--poll-interval=1s", "--rate-window=4s", "--stale-after=20s",
			"--lease-duration=" + leaseDuration.String(), "--lease-renew-deadline=" +
				renewDeadline.String(), "--lease-retry-period=1s",
		},
		Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	theScene = s
	second, err := s.AddAdapter(lifetime, "adapter-2")
	if err != nil {
		return err
	}
	s.adapters = []*stage.Adapter{s.Adapter, second}
	return s.addFunction()
})

func (s *scene) addFunction() (err error) {
	s.function, err = s.AddFunction(lifetime,
		stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Replicas: replicas})
	if err != nil {
		return err
	}
	err = s.Client.Create(lifetime, &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name},
		Spec: v1alpha1.AutoscalingPolicySpec{
			ScaleTargetRef: v1alpha1.ScaleTargetRef{
				APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction,
				Name: name,
			},
			MinReplicas: new(int32(1)), MaxReplicas: 20, LatencyObjective: metav1.Duration{Duration: 30 * time.Second},
		},
	})
	if err != nil {
		return err
	}
	var publishing context.Context
	publishing, s.stop = context.WithCancel(lifetime)
	s.perSecond.Store(calm)
	s.publishing.Go(func() error {
		return s.function.Publish(publishing, func(time.Duration) float64 { return float64(s.perSecond.Load()) })
	})
	return nil
}

func (s *scene) close() {
	for _, a := range s.adapters {
		a.Kill()
	}
	if s.stop != nil {
		s.stop()
		_ = s.publishing.Wait() // it was told to end
	}
	s.Close()
}

// onScene returns the scene with both adapters up, one of them deciding, and the capacity learned.
func onScene(t *testing.T) *scene {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real broker and control plane")
	}
	require.NoError(t, openScene(), "setting the scene")
	theScene.settle(t)
	return theScene
}

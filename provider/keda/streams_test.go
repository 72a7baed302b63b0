// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
)

// client is the client of a stream, in a bubble.
type client[T any] struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // as grpc.ServerStream has it
	gone context.CancelFunc
	// slow, when set, blocks Send until it is closed.
	slow chan struct{}

	mu    sync.Mutex
	heard []string
	ended bool
	err   error
}

func (c *client[T]) Context() context.Context { return c.ctx }

func (c *client[T]) Send(message *T) error {
	if c.slow != nil {
		select {
		case <-c.slow:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := any(message).(type) {
	case *pb.IsActiveResponse:
		c.heard = append(c.heard, fmt.Sprint(m.GetResult()))
	case *pb.GetMetricSpecResponse:
		c.heard = append(c.heard,
			fmt.Sprintf("%s %g", m.GetMetricSpecs()[0].GetMetricName(), m.GetMetricSpecs()[0].GetTargetSizeFloat()))
	}
	return nil
}

// open opens a stream and receives from it.
func open[T any](t *testing.T, slow chan struct{}, of *pb.ScaledObjectRef,
	rpc func(*pb.ScaledObjectRef, grpc.ServerStreamingServer[T]) error,
) *client[T] {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &client[T]{ctx: ctx, gone: cancel, slow: slow}
	go func() {
		err := rpc(of, c)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended, c.err = true, err
	}()
	synctest.Wait()
	return c
}

// now returns what the client has received once the bubble is idle.
func (c *client[T]) now() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.heard...)
}

func (c *client[T]) end() (ended bool, err error) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended, c.err
}

// inBubble runs a server in a bubble, until the test ends or stop is called.
func inBubble(t *testing.T, test func(t *testing.T, env *environment, s *Server, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		env := newEnvironment()
		config := env.config()
		config.Now = time.Now
		s := New(config)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			s.run(ctx)
			close(done)
		}()
		defer func() {
			stop() // also when the test has failed: the bubble waits for its goroutines
			<-done
		}()
		test(t, env, s, stop)
	})
}

func TestStreamsSendTheStateAndThenChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		env.change(func() { env.policies[policyKey()] = decidedPolicy(3, time.Now()) })
		active := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		require.Equal(t, []string{"true"}, active.now(), "at once")

		become := func(replicas int32) {
			env.change(func() { env.policies[policyKey()] = decidedPolicy(replicas, time.Now()) })
			s.PolicyChanged(policyKey())
			time.Sleep(minPause)
		}
		become(5)
		require.Equal(t, []string{"true"}, active.now(), "another number is no edge")
		become(0)
		require.Equal(t, []string{"true", "false"}, active.now())
		become(1)
		require.Equal(t, []string{"true", "false", "true"}, active.now())
		late := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		require.Equal(t, []string{"true"}, late.now())

		env.change(func() { delete(env.policies, policyKey()) })
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"true", "false", "true"}, active.now(), "what is unknown stays as it was")
	})
}

// KEDA 2.21 reconciles a ScaledObject at every message of StreamMetricSpec, also at one that it knows.
func TestSpecsThatNeverChangeAreNotStreamed(t *testing.T) {
	for name, of := range map[string]*pb.ScaledObjectRef{
		"the decision of a policy": ref("policy", "resize"),
		"a threshold of its own":   ref("topic", "a", "subscription", "b", "messagesPerReplica", "10"),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
				env.change(func() { env.policies[policyKey()] = decidedPolicy(3, time.Now()) })
				specs := open(t, nil, of, s.StreamMetricSpec)
				ended, err := specs.end()
				require.True(t, ended)
				require.Equal(t, codes.Unimplemented, status.Code(statusError(err)))
				require.Empty(t, specs.now())
				answer, err := s.GetMetricSpec(t.Context(), of)
				require.NoError(t, err)
				require.Len(t, answer.GetMetricSpecs(), 1, "which KEDA calls instead")
			})
		})
	}
}

func TestStreamsSendChangesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		time.Sleep(refreshEvery + minPause) // a refresh has just run
		active := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		require.Empty(t, active.now(), "nothing is known yet")
		began := time.Now()
		env.change(func() { env.policies[policyKey()] = decidedPolicy(3, time.Now()) })
		s.PolicyChanged(policyKey())
		require.Equal(t, []string{"true"}, active.now())
		require.Zero(t, time.Since(began), "of the bubble's time")
	})
}

func TestStreamsSendWhatWasNotEnqueuedWithinASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		active := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		env.change(func() { env.policies[policyKey()] = decidedPolicy(3, time.Now()) })
		time.Sleep(refreshEvery)
		require.Equal(t, []string{"true"}, active.now())
	})
}

func TestStreamsSendEachThresholdOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		of := ref("policy", "resize", "strategy", "BacklogPerReplica")
		specs := open(t, nil, of, s.StreamMetricSpec)
		require.Empty(t, specs.now())
		env.change(func() { env.policies[policyKey()] = withStrategies() })
		s.PolicyChanged(policyKey())
		require.Equal(t, []string{"pulsar-backlog-ready-messages 500"}, specs.now(), "although nothing is measured yet")
		other := withStrategies()
		other.Spec.Strategies[1].BacklogPerReplica.Messages = 20
		env.change(func() { env.policies[policyKey()] = other })
		time.Sleep(2 * refreshEvery)
		require.Equal(t, []string{"pulsar-backlog-ready-messages 500", "pulsar-backlog-ready-messages 20"}, specs.now())
		time.Sleep(10 * time.Minute)
		require.Len(t, specs.now(), 2, "what did not change is not sent again")
		answer, err := s.GetMetricSpec(t.Context(), of)
		require.NoError(t, err)
		require.Equal(t, 20.0, answer.GetMetricSpecs()[0].GetTargetSizeFloat(), "the same")
	})
}

func TestStreamsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, stop func()) {
		env.change(func() { env.policies[policyKey()] = decidedPolicy(3, time.Now()) })
		goes := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		stays := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		goes.gone()
		ended, err := goes.end()
		require.True(t, ended, "at once")
		require.Equal(t, codes.Canceled, status.Code(statusError(err)))
		ended, _ = stays.end()
		require.False(t, ended)
		stop()
		ended, err = stays.end()
		require.True(t, ended)
		require.NoError(t, err, "KEDA comes back at once after a clean end")
		require.Empty(t, s.watches.watched)
		require.Zero(t, s.watches.streams)

		wrong := open(t, nil, ref("polcy", "resize"), s.StreamIsActive)
		_, err = wrong.end()
		require.Equal(t, codes.InvalidArgument, status.Code(statusError(err)))
	})
}

func TestASlowClientBlocksNoOtherClient(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		env.change(func() { env.policies[policyKey()] = decidedPolicy(3, time.Now()) })
		slow := make(chan struct{})
		stuck := open(t, slow, ref("policy", "resize"), s.StreamIsActive)
		quick := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		for _, replicas := range []int32{0, 1, 0} {
			env.change(func() { env.policies[policyKey()] = decidedPolicy(replicas, time.Now()) })
			s.PolicyChanged(policyKey())
			time.Sleep(minPause)
		}
		require.Equal(t, []string{"true", "false", "true", "false"}, quick.now())
		require.Empty(t, stuck.now())
		close(slow)
		require.Equal(t, []string{"true", "false"}, stuck.now(), "what it was being sent, and then the last")
	})
}

func TestAPanicAffectsOneTrigger(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		other := types.NamespacedName{Namespace: inNamespace, Name: "other"}
		env.change(func() {
			env.policies[policyKey()], env.policies[other] = decidedPolicy(0, time.Now()), decidedPolicy(0, time.Now())
		})
		wrong, right := open(t, nil, ref("policy", "resize"), s.StreamIsActive), open(t, nil, ref("policy", "other"),
			s.StreamIsActive)
		env.change(func() { env.policies[policyKey()], env.policies[other] = nil, decidedPolicy(1, time.Now()) })
		time.Sleep(2 * refreshEvery)
		require.Equal(t, []string{"false"}, wrong.now())
		require.Equal(t, []string{"false", "true"}, right.now())
		require.Contains(t, env.log.all()[0], "refreshing a trigger panicked")
	})
}

func TestStreamsAreBounded(t *testing.T) {
	s := newEnvironment().server()
	s.watches.streams = MaxStreams
	err := s.StreamIsActive(ref("policy", "resize"), &client[pb.IsActiveResponse]{ctx: t.Context()})
	require.Equal(t, codes.ResourceExhausted, status.Code(statusError(err)))
	require.Equal(t, MaxStreams, s.watches.streams)
}

func TestTheStreamsOfANamespaceAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, env *environment, s *Server, _ func()) {
		env.change(func() { env.policies[policyKey()] = decidedPolicy(3, time.Now()) })
		s.watches.perNamespace = 2
		first := open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		open(t, nil, ref("policy", "resize"), s.StreamIsActive)
		ended, err := open(t, nil, ref("policy", "resize"), s.StreamIsActive).end()
		require.True(t, ended)
		require.Equal(t, codes.ResourceExhausted, status.Code(statusError(err)))
		require.EqualError(t, err, "2 streams for namespace media are open, and the bound of a namespace is 2: use fewer "+
			"external-push triggers, or raise --max-streams-per-namespace (value scaler.maxStreamsPerNamespace of the "+
			"chart); KEDA still polls the trigger")

		elsewhere := ref("policy", "resize")
		elsewhere.Namespace = "other"
		ended, _ = open(t, nil, elsewhere, s.StreamIsActive).end()
		require.False(t, ended)
		first.gone()
		first.now()
		ended, _ = open(t, nil, ref("policy", "resize"), s.StreamIsActive).end()
		require.False(t, ended)
	})
}

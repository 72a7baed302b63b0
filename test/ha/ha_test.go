// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestBothReplicasServeTheSameNumber(t *testing.T) {
	s := onScene(t)
	leader, other := s.roles(t)
	want := s.desired(t)
	for _, a := range []*stage.Adapter{leader, other} {
		got, err := s.answer(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.EqualValues(t, replicas, want)
	passes, err := s.passes(t.Context(), other)
	require.NoError(t, err)
	require.Zero(t, passes, "two must not decide")
}

// takeOver ends the leader, and waits until the other adapter decides. Meanwhile the other must serve the same number,
// which is in the status.
func (s *scene) takeOver(t *testing.T, end func(leader *stage.Adapter)) {
	t.Helper()
	leader, other := s.roles(t)
	before, want, since := s.capacity(t), s.desired(t), time.Now()
	end(leader)
	ended := time.Now()
	s.route(t, other)
	looks := 0
	s.function.Await(t, "the other adapter to decide", func(ctx context.Context) (bool, string, error) {
		got, err := s.answer(ctx, other)
		if err != nil {
			return false, "", fmt.Errorf("after %s and %d answers: %w", time.Since(ended), looks, err)
		}
		if got != want {
			return false, "", fmt.Errorf("after %s it serves %d rather than %d", time.Since(ended), got, want)
		}
		looks++
		passes, err := s.passes(ctx, other)
		return err == nil && passes > 0, fmt.Sprint(passes, " passes"), err
	})
	t.Logf("the other decides %s after the end, with a Lease of %s, and has given the same answer %d times until then",
		time.Since(ended).Round(time.Millisecond), leaseDuration, looks)
	s.function.AwaitHPA(t, "ScalingActive=True")
	s.requireRemembered(t, before)
	s.requireUnchanged(t, since)
}

func TestCoreALeaderThatIsKilledIsReplacedAndNothingElseChanges(t *testing.T) {
	s := onScene(t)
	s.takeOver(t, func(leader *stage.Adapter) { leader.Kill() })
}

func TestALeaderThatIsStoppedHandsOverAndNothingElseChanges(t *testing.T) {
	s := onScene(t)
	s.takeOver(t, func(leader *stage.Adapter) {
		s.stopLeader(t, leader)
		require.Contains(t, leader.LogTail(), "msg=stopped")
	})
	since := time.Now()
	s.settle(t) // restarts it
	want := s.desired(t)
	for _, a := range s.adapters {
		got, err := s.answer(t.Context(), a)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	s.requireUnchanged(t, since)
}

// TestALeaderThatStoodStillWritesNoMore: when it continues, its readings are stale and the other adapter leads. It must
// end before it reports that, or writes replicas.
func TestALeaderThatStoodStillWritesNoMore(t *testing.T) {
	s := onScene(t)
	var stopped *stage.Adapter
	s.takeOver(t, func(leader *stage.Adapter) {
		stopped = leader
		require.NoError(t, leader.Pause())
	})
	stale := time.Now().Add(staleAfter) // since it stopped, at least
	s.function.Await(t, "its readings to be stale", func(context.Context) (bool, string, error) {
		return time.Now().After(stale), "not yet", nil
	})
	known, since := s.backlogKnown(t), time.Now()
	require.Equal(t, metav1.ConditionTrue, known.Status)
	require.NoError(t, stopped.Resume())
	s.function.Await(t, "the adapter that stood still to end", func(context.Context) (bool, string, error) {
		require.Equal(t, known, s.backlogKnown(t), "it reported after %s", time.Since(since))
		return stopped.Ended() != nil, "it runs", nil
	})
	t.Logf("it ended %s after it continued", time.Since(since).Round(time.Millisecond))
	require.Contains(t, stopped.LogTail(), "the Lease expired")
	s.requireUnchanged(t, since)
}

// TestAnAnnotationPausesAllPoliciesAndOutlivesTheLeader: the Lease keeps it when it is renewed, and when another
// adapter takes it over. Nothing else in the cluster is edited.
func TestAnAnnotationPausesAllPoliciesAndOutlivesTheLeader(t *testing.T) {
	s := onScene(t)
	leader, other := s.roles(t)
	s.annotateLease(t, `"incident 42"`)
	require.Contains(t, s.function.AwaitConditions(t, "Ready=True/Paused"), "all policies are paused (incident 42)")
	s.AwaitGone(t, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: plan.AutoscalerName(name)},
	})
	s.follow(t)
	since := time.Now() // until the HPA was deleted, it scaled

	s.stopLeader(t, leader)
	s.function.Await(t, "the other adapter to lead", func(ctx context.Context) (bool, string, error) {
		passes, err := s.passes(ctx, other)
		return err == nil && passes > 0, fmt.Sprint(passes, " passes"), err
	})
	led := time.Now()
	s.function.AwaitPolicy(t, "a backlog that it measured", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Signals != nil && p.Status.Signals.MeasuredAt.After(led)
	})
	s.function.AwaitConditions(t, "Ready=True/Paused", "BacklogKnown=True/Measured")
	p, err := s.function.Policy(t.Context())
	require.NoError(t, err)
	require.Nil(t, p.Status.DesiredReplicas)
	require.Nil(t, p.Status.Decision)
	s.function.AwaitDone(t, calm)

	s.requireUnchanged(t, since)

	s.annotateLease(t, "null")
	s.route(t, other)
	s.settle(t)
}

// TestAnAPIServerThatIsKilledComesBackToTheSame: meanwhile only messages are processed. It is the last test, as
// it leaves a higher load, which replicas follow.
func TestAnAPIServerThatIsKilledComesBackToTheSame(t *testing.T) {
	s := onScene(t)
	before, since := s.capacity(t), time.Now()
	done := s.function.Score.Counts().Done
	require.NoError(t, s.Cluster.APIServer.Restart(t.Context()))
	t.Logf("the API server was away for %s", time.Since(since).Round(time.Millisecond))
	for i, a := range s.adapters {
		t.Logf("adapter %d ended with it: %t", i+1, a.Ended() != nil)
	}
	s.settle(t)
	s.roles(t)
	s.requireRemembered(t, before)
	s.requireUnchanged(t, since)
	s.function.Await(t, "messages to be done", func(context.Context) (bool, string, error) {
		now := s.function.Score.Counts().Done
		return now > done+calm, fmt.Sprint(now-done, " more"), nil
	})

	// And replicas still follow a higher load.
	p, err := s.function.Policy(t.Context())
	require.NoError(t, err)
	bounded := client.MergeFrom(p.DeepCopy())
	p.Spec.MaxReplicas = 20
	require.NoError(t, s.Client.Patch(t.Context(), p, bounded))
	require.NoError(t, s.publish(t.Context(), 3*calm))
	s.function.Await(t, "replicas for three times the load", func(ctx context.Context) (bool, string, error) {
		now, err := s.function.Replicas(ctx)
		return err == nil && now.Spec > 2*replicas-1, fmt.Sprintf("%+v", now), err
	})
}

// annotateLease pauses all policies with a text as JSON, or resumes them with null.
func (s *scene) annotateLease(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, s.Client.Patch(t.Context(), s.lease(t), client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, controllers.AnnotationAllPaused, text))))
}

// stopLeader ends the leader in order: it releases the Lease, which would last for some time.
func (s *scene) stopLeader(t *testing.T, leader *stage.Adapter) {
	t.Helper()
	holder := ptr.Deref(s.lease(t).Spec.HolderIdentity, "")
	require.NotEmpty(t, holder)
	require.NoError(t, leader.Stop(), "SIGTERM was not enough")
	require.NotEqual(t, holder, ptr.Deref(s.lease(t).Spec.HolderIdentity, ""))
}

// lease is the Lease of the leader election.
func (s *scene) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: "pulsar-autoscaler", Name: "pulsar-autoscaler-adapter"}
	require.NoError(t, s.Client.Get(t.Context(), key, lease))
	return lease
}

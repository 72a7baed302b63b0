// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// needsScalableTopics skips the test on versions without them.
func needsScalableTopics(t *testing.T, b *broker.Broker) {
	t.Helper()
	if !strings.HasPrefix(b.Version(), "5.") {
		t.Skipf("Pulsar %s has no scalable topics: run it with make e2e-signals", b.Version())
	}
}

func scalablePath(topic string) string {
	return "/admin/v2/scalable/" + strings.TrimPrefix(topic, backlog.ScalableDomain)
}

// scalableTopic creates a topic of Pulsar 5 with one segment.
func scalableTopic(t *testing.T, b *broker.Broker, name string) (topic string) {
	t.Helper()
	topic = backlog.ScalableDomain + "public/default/" + name
	_, err := b.Demand(t.Context(), http.MethodPut, scalablePath(topic), nil)
	require.NoError(t, err)
	return topic
}

// segments are the numbers of segments that were ever created, and of those that are active.
func segments(ctx context.Context, topic string) (created, active int, err error) {
	answer, err := scene.Broker.Demand(ctx, http.MethodGet, scalablePath(topic), nil)
	if err != nil {
		return 0, 0, err
	}
	var layout struct {
		NextSegmentID int `json:"nextSegmentId"`
		Segments      map[string]struct {
			Active bool `json:"active"`
		} `json:"segments"`
	}
	err = json.Unmarshal(answer, &layout)
	for _, segment := range layout.Segments {
		if segment.Active {
			active++
		}
	}
	return layout.NextSegmentID, active, err
}

// TestSignalsScaleStreamConsumers scales V5 StreamConsumers on a scalable topic 1 -> 3 -> 1: the backlog is the truth,
// and the broker splits the topic for the replicas that are added.
func TestSignalsScaleStreamConsumers(t *testing.T) {
	t.Parallel()
	onStage(t)
	needsScalableTopics(t, scene.Broker)
	const name, messages = "streamed", 300
	var done atomic.Int64
	runner, err := replica.NewStream(t.Context(), os.Stderr, func(replica.Completion) { done.Add(1) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runner.Close()) })
	topic := scalableTopic(t, scene.Broker, name)
	f := addFunction(t, stage.FunctionConfig{
		Name: name, Deployment: true, WithoutTopic: true, Topic: topic, Runner: runner, ServiceTime: 100 * time.Millisecond,
	})
	p := f.Consumes(newPolicy(name))
	p.Spec.MaxReplicas, p.Spec.Subscription.Type = 3, v1alpha1.SubscriptionStream
	addPolicy(t, p)
	said := f.AwaitConditions(t, "BacklogKnown=False/Unsupported", "Ready=False/Unsupported")
	require.Contains(t, said, "none counts messages: use strategy BacklogPerReplica")
	created, _, err := segments(t.Context(), topic)
	require.NoError(t, err)
	require.Equal(t, 1, created)

	current, err := f.Policy(t.Context())
	require.NoError(t, err)
	current.Spec.Strategies = []v1alpha1.Strategy{{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 50},
	}}
	require.NoError(t, scene.Client.Update(t.Context(), current))
	require.NoError(t, runner.Publish(t.Context(), scene.Broker.ServiceURL(), topic, messages))
	f.AwaitReplicas(t, 3, 3)
	f.Await(t, "a split for the added replicas", func(ctx context.Context) (bool, string, error) {
		created, active, err := segments(ctx, topic)
		return active > 1, fmt.Sprintf("%d of %d segments are active, %d messages done", active, created, done.Load()), err
	})
	// Messages of a segment that moves may come again. That none is left is shown by the backlog, and so by the replicas.
	f.Await(t, "all messages to be processed", func(context.Context) (bool, string, error) {
		return done.Load() >= messages, fmt.Sprint(done.Load()), nil
	})
	f.AwaitReplicas(t, 1, 1)
	f.AwaitConditions(t, "SubscriptionVerified=True/AsExpected", "BacklogKnown=True")
}

// aScalableTopicIsItsSegments compares the backlog with the published messages, before and after a split.
func aScalableTopicIsItsSegments(t *testing.T, g *ground) {
	needsScalableTopics(t, g.Broker)
	absent := g.watchTopics(t, backlog.ScalableDomain+"public/default/absent")
	require.ErrorContains(t, absent.awaitError(backlog.ErrTopicNotFound), "Scalable topic not found")
	topic := scalableTopic(t, g.Broker, "counted")
	w := g.watchTopics(t, topic)
	w.awaitError(backlog.ErrSubscriptionNotFound)

	g.demand(t, http.MethodPut, scalablePath(topic)+"/subscriptions/s?type=STREAM", "")
	stream, err := replica.NewStream(t.Context(), os.Stderr, func(replica.Completion) {})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stream.Close()) })
	require.NoError(t, stream.Publish(t.Context(), g.ServiceURL(), topic, 70))
	r := w.fresh()
	requireSignal(t, "total", 70, r.Total, 0)
	require.Equal(t, backlog.NoType, r.Type, "there was no consumer yet")
	_, err = r.PublishRate.Value()
	require.ErrorIs(t, err, backlog.ErrNotReported)

	g.demand(t, http.MethodPost, scalablePath(topic)+"/split/0", "")
	require.NoError(t, stream.Publish(t.Context(), g.ServiceURL(), topic, 30))
	r = w.fresh()
	requireSignal(t, "total over the sealed segment and its children", 100, r.Total, 0)
}

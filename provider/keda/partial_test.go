// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestAPartOfTheTopicsNeverLowersReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		replicas *int32
		value    float64
		code     codes.Code
	}{
		"six replicas":         {new(int32(6)), 600, codes.OK},
		"no replica":           {new(int32(0)), 100, codes.OK},
		"the replicas unknown": {nil, 0, codes.Unavailable},
	} {
		for _, threshold := range []string{"messagesPerReplica", "messagesPerSecondPerReplica"} {
			t.Run(name+", "+threshold, func(t *testing.T) {
				env := newEnvironment()
				s := env.server()
				env.readings[topicSubject()] = fixture.Partial(reading(noon()), backlog.ErrForbidden)
				if test.replicas != nil {
					env.replicas[scaledObject()] = *test.replicas
				}
				got, err := value(t, s, ref("topic", "orders", "subscription", "resize", threshold, "100"))
				require.Equal(t, test.code, status.Code(statusError(err)), "%v", err)
				require.Equal(t, test.value, got.GetMetricValueFloat())
			})
		}
	}
}

// TestAPartOfTheTopicsAddsReplicas for as long as some are missing, not only for as long as values are held.
func TestAPartOfTheTopicsAddsReplicas(t *testing.T) {
	of := func(threshold string) *pb.ScaledObjectRef {
		return ref("topic", "orders", "subscription", "resize", threshold, "100")
	}
	for name, test := range map[string]struct {
		of       *pb.ScaledObjectRef
		replicas int32
		value    float64
	}{
		"a backlog":     {of("messagesPerReplica"), 2, 250},
		"a rate":        {of("messagesPerSecondPerReplica"), 2, 300},
		"busy replicas": {ref("target", "Function/resize", "targetPercent", "40"), 4, 200},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment()
			s := env.server()
			r := reading(noon())
			r.PublishRate = backlog.Known(300)
			for _, subject := range []Subject{
				topicSubject(), {Namespace: inNamespace, Target: Target{"Function", "resize"}},
			} {
				env.readings[subject] = fixture.Partial(r, backlog.ErrForbidden)
			}
			env.replicas[scaledObject()] = test.replicas
			for range 150 {
				got, err := value(t, s, test.of)
				require.NoError(t, err)
				require.Equal(t, test.value, got.GetMetricValueFloat())
				is, err := s.IsActive(t.Context(), test.of)
				require.NoError(t, err)
				require.True(t, is.GetResult())
				require.Equal(t, 1, s.evaluator.last.held(), "it is counted, as if all were missing")
				env.pass(time.Minute)
			}
			lines := env.log.all()
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], "since=2026-11-22T12:00:00Z")
			require.Contains(t, lines[0], "99 of 100 topics are known; missing: persistent://public/default/in-7")

			env.pass(58 * time.Minute)
			env.unread = errBrokerDown
			got, err := value(t, s, test.of)
			require.NoError(t, err, "an outage is held from its begin")
			require.Equal(t, test.value, got.GetMetricValueFloat())
		})
	}
}

// TestReplicasStayWhileAPartOfTheTopicsIsIdle: the missing ones may have messages.
func TestReplicasStayWhileAPartOfTheTopicsIsIdle(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	idle := reading(noon())
	idle.Ready, idle.Unacked, idle.DeliveryRate = backlog.Known(0), backlog.Known(0), backlog.Known(0)
	env.readings[topicSubject()] = fixture.Partial(idle, backlog.ErrForbidden)
	of := ref("topic", "orders", "subscription", "resize", "messagesPerReplica", "100")
	env.replicas[scaledObject()] = 2
	got, err := value(t, s, of)
	require.NoError(t, err)
	require.Equal(t, 200.0, got.GetMetricValueFloat())
	is, err := s.IsActive(t.Context(), of)
	require.NoError(t, err)
	require.True(t, is.GetResult())

	s = env.server()
	env.replicas[scaledObject()] = 0
	_, err = s.IsActive(t.Context(), of)
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)), "whether there is work is unknown")
	require.ErrorContains(t, err, "99 of 100 topics are known")
}

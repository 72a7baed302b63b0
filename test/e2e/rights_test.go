// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// testRights compares the table of docs/pulsar-permissions.md with the broker: each role has one permission, and an
// error names the missing one.
func testRights(t *testing.T, s *secured) {
	roles := []string{"consume", "functions", "sinks", "sources", "nobody", "admin"}
	named := map[string]backlog.Credentials{}
	for _, role := range roles {
		named[role] = backlog.Credentials{Plugin: "token", Params: s.token(t, role, time.Hour)}
	}
	source := s.reader(t, pulsar.Config{Credentials: newSecrets(named)})
	describe := func(kind function.Kind) func(backlog.Cluster) error {
		return func(cluster backlog.Cluster) error {
			_, err := source.Worker(0).Describe(t.Context(), function.Component{
				Cluster: cluster, Kind: kind, Tenant: "private", Namespace: "work", Name: "absent",
			})
			if errors.Is(err, backlog.ErrFunctionNotFound) { // the worker reports it only to permitted roles
				return nil
			}
			require.Error(t, err)
			return err
		}
	}
	reads := map[string]struct {
		role, grant string
		read        func(backlog.Cluster) error
	}{
		"topic statistics": {"consume", "consume on namespace private/work", func(cluster backlog.Cluster) error {
			sample, err := source.Fetch(t.Context(), backlog.Topic{Cluster: cluster, Name: securedTopic},
				backlog.Request{Detail: backlog.Full})
			for _, partition := range sample.Partitions {
				require.NotNil(t, partition.AddedEntries, "the counter of entries must come with it")
			}
			return err
		}},
		"the topics of a namespace": {"consume", "consume on namespace private/work", func(cluster backlog.Cluster) error {
			found := false
			err := source.List(t.Context(), backlog.Namespace{Cluster: cluster, Name: "private/work"},
				func(topic string) { found = found || topic == securedTopic })
			require.Equal(t, err == nil, found)
			return err
		}},
		"a function": {"functions", "functions on namespace private/work", describe(function.KindFunction)},
		"a sink":     {"sinks", "sinks on namespace private/work", describe(function.KindSink)},
		"a source":   {"sources", "sources on namespace private/work", describe(function.KindSource)},
	}
	for what, r := range reads {
		for _, role := range roles {
			t.Run(what+" by "+role, func(t *testing.T) {
				err := r.read(backlog.Cluster{AdminURL: s.AdminURL(), Access: role})
				if role == r.role || role == "admin" {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, backlog.ErrForbidden)
				require.ErrorContains(t, err, ": grant "+r.grant)
				require.ErrorContains(t, err, "to the role of the credentials")
			})
		}
	}
	t.Run("entries of a backlog by consume", func(t *testing.T) { testPeekedEntries(t, s, source) })
}

// testPeekedEntries shows that a role that may read statistics may also read entries of a reloaded topic.
func testPeekedEntries(t *testing.T, s *secured, source *pulsar.Source) {
	t.Helper()
	const topic, messages = securedTopic + "-peeked", 50
	require.NoError(t, s.CreateTopic(t.Context(), topic, 0))
	require.NoError(t, s.CreateSubscription(t.Context(), topic, "t/n/f", broker.Earliest))
	publisher, err := broker.Connect(s.ServiceURL(), s.token(t, "admin", time.Hour))
	require.NoError(t, err)
	defer publisher.Close()
	g := &ground{Broker: s.Broker, client: publisher}
	g.producer(t, topic, messages).send(messages)
	require.NoError(t, s.Unload(t.Context(), topic))
	sample, err := source.Fetch(t.Context(),
		backlog.Topic{Cluster: backlog.Cluster{AdminURL: s.AdminURL(), Access: "consume"}, Name: topic},
		backlog.Request{Detail: backlog.Full})
	require.NoError(t, err)
	require.EqualValues(t, 1, sample.PeekedEntries)
	require.EqualValues(t, messages, sample.PeekedMessages)
}

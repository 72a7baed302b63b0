// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// The paths of the two lists of public/default, as the fake broker sees them.
const (
	topicsPath            = "/admin/v2/persistent/public/default"
	partitionedTopicsPath = "partitioned"
)

func (b *fakeBroker) namespace(name string) backlog.Namespace {
	return backlog.Namespace{Cluster: backlog.Cluster{AdminURL: b.URL}, Name: name}
}

// list returns the distinct topics of a namespace.
func list(t *testing.T, source *Source, namespace backlog.Namespace) ([]string, error) {
	t.Helper()
	found := map[string]bool{}
	err := source.List(t.Context(), namespace, func(topic string) { found[topic] = true })
	return slices.Sorted(maps.Keys(found)), err
}

func TestListNamesEveryTopicOnce(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on(topicsPath, answers(`["persistent://public/default/plain","persistent://public/default/parts-partition-0",
		"persistent://public/default/parts-partition-1","persistent://public/default/odd-partition-01","persistent://public/default/a%2Fb",
		"persistent://public/default/left-partition-7","non-persistent://public/default/volatile","persistent://public/default/__change_events",
		"persistent://public/default/__change_events-partition-0","persistent://public/default/__transaction_buffer_snapshot",
		"persistent://public/default/plain-public/default/fn__transaction_pending_ack","persistent://other/ns/topic","persistent://public/default/\u00e9"]`))
	broker.on(partitionedTopicsPath,
		answers(`["persistent://public/default/parts","persistent://public/default/never-loaded"]`))

	names, err := list(t, newSource(t, Config{}, broker), broker.namespace("public/default"))

	require.NoError(t, err)
	require.Equal(t, []string{
		"persistent://public/default/a%2Fb", "persistent://public/default/left", "persistent://public/default/never-loaded",
		"persistent://public/default/odd-partition-01", "persistent://public/default/parts",
		"persistent://public/default/plain", "persistent://public/default/é",
	}, names)
	require.Equal(t, []string{topicsPath, partitionedTopicsPath}, broker.requested())
	require.Equal(t, "includeSystemTopic=false", broker.request(0).URL.RawQuery)
}

func TestListExplainsFailures(t *testing.T) {
	empty := answers(`[]`)
	tests := map[string]struct {
		namespace   string
		all, parted http.HandlerFunc
		reason      error
		text        string
	}{
		"a missing permission names the grant": {
			all: replays(t, "4.0.8-403-role-without-permission-topics.txt"), reason: backlog.ErrForbidden,
			text: `permission missing: BROKER says "Unauthorized to validateNamespaceOperation for operation [GET_TOPICS] on ` +
				`namespace [public/default]" of ` +
				`namespace public/default: grant consume on namespace public/default to the role of the credentials`,
		},
		"on the second call too": {
			all: empty, parted: replays(t, "4.0.8-403-role-without-permission-topics.txt"), reason: backlog.ErrForbidden,
			text: `permission missing: BROKER says "Unauthorized to validateNamespaceOperation for operation [GET_TOPICS] on ` +
				`namespace [public/default]" of ` +
				`namespace public/default: grant consume on namespace public/default to the role of the credentials`,
		},
		"bad credentials": {
			all: replays(t, "4.0.8-401-no-token.txt"), reason: backlog.ErrUnauthenticated,
			text: "credentials refused: BROKER requires credentials and none are configured: give the adapter a token",
		},
		"a missing namespace": {
			all: says(404, "Namespace does not exist"), reason: backlog.ErrTopicNotFound,
			text: `topic not found: BROKER says "Namespace does not exist" of namespace public/default: create the namespace or correct its name`,
		},
		"another answer": {
			all: answers(`{"topics":[]}`), reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER did not send the state of namespace public/default (an object where a list " +
				"should be): is http://BROKER a Pulsar admin service?",
		},
		"names that are no names": {
			all: answers(`[1]`), reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER did not send the state of namespace public/default (a topic is a number): is " +
				"http://BROKER a Pulsar admin service?",
		},
		"an incomplete list": {
			all: answers(`["persistent://public/default/a"`), reason: backlog.ErrProtocol,
			text: "unexpected answer: the answer of BROKER for namespace public/default is cut off: is http://BROKER a Pulsar " +
				"admin service?",
		},
		"a topic for a namespace": {
			namespace: "a/b/c", reason: backlog.ErrUnsupported,
			text: `not supported: namespace "a/b/c" must look like tenant/namespace`,
		},
		"steps": {
			namespace: "a/..", reason: backlog.ErrUnsupported,
			text: `not supported: namespace "a/.." must look like tenant/namespace`,
		},
		"nothing": {
			namespace: "/", reason: backlog.ErrUnsupported,
			text: `not supported: namespace "/" must look like tenant/namespace`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			if tt.all != nil {
				broker.on(topicsPath, tt.all)
			}
			if tt.parted != nil {
				broker.on(partitionedTopicsPath, tt.parted)
			}
			if tt.namespace == "" {
				tt.namespace = "public/default"
			}
			_, err := list(t, newSource(t, Config{}, broker), broker.namespace(tt.namespace))
			require.ErrorIs(t, err, tt.reason)
			require.Equal(t, strings.ReplaceAll(tt.text, "BROKER", broker.host()), err.Error())
		})
	}
}

func TestListOfManyTopics(t *testing.T) {
	all := make([]string, 0, 100_000)
	for i := range cap(all) {
		all = append(all, fmt.Sprintf("persistent://public/default/orders-%d", i))
	}
	content, err := json.Marshal(all)
	require.NoError(t, err)
	broker := newFakeBroker(t)
	broker.on(topicsPath, answers(string(content)))
	broker.on(partitionedTopicsPath, answers(string(content)))
	source := newSource(t, Config{RequestTimeout: time.Minute}, broker) // its length counts, not the machine's load
	names, err := list(t, source, broker.namespace("public/default"))
	require.NoError(t, err)
	require.ElementsMatch(t, all[:10],
		slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(name) > len(all[9]) }))
	require.Len(t, names, len(all))
}

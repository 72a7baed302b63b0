// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	allTopics = "/admin/v2/broker-stats/topics"
	allHosts  = "/admin/v2/brokers"
)

func allOfThem(string) bool { return true }

// loaded is an answer about one topic of a broker.
func loaded(topic string, backlogEntries int) string {
	return fmt.Sprintf(
		`{"public/default":{"0x00000000_0xffffffff":{"persistent":{"persistent://public/default/%s":{"msgInCount":9,`+
			`"subscriptions":{"s":{"msgBacklog":%d,"consumers":[]}}}}}}}`, topic, backlogEntries)
}

func bulkTopic(backlogEntries int64) backlog.BulkTopic {
	return backlog.BulkTopic{
		PublishedMessages: 9, Subscriptions: map[string]backlog.BulkSubscription{"s": {BacklogEntries: backlogEntries}},
	}
}

func everyTopic(backlog.Topic) bool { return true }

func newBrokerStats(t *testing.T, config BrokerStatsConfig, brokers ...*fakeBroker) *BrokerStats {
	t.Helper()
	stats, err := newSource(t, Config{}, brokers...).BrokerStats(config)
	require.NoError(t, err)
	return stats
}

func TestBrokerStatsAsRecorded(t *testing.T) {
	resize := func(entries int64, consumers int) backlog.BulkTopic {
		return backlog.BulkTopic{PublishedMessages: 7, Subscriptions: map[string]backlog.BulkSubscription{
			"public/default/resize": {BacklogEntries: entries, Consumers: consumers},
		}}
	}
	for _, version := range []string{"4.0.8", "4.2.4", "5.0.0-M1"} {
		t.Run(version, func(t *testing.T) {
			content := fixture(t, version+"-broker-stats-topics.json")
			topics, err := decodeBrokerStats(bytes.NewReader(content), func(name string) bool {
				return strings.HasPrefix(name, "persistent://public/default/") && !strings.Contains(name, "__change_events")
			})
			require.NoError(t, err)
			require.Equal(t, map[string]backlog.BulkTopic{
				"persistent://public/default/orders":            resize(6, 1),
				"persistent://public/default/parts-partition-0": resize(7, 0),
				"persistent://public/default/parts-partition-1": resize(7, 0),
			}, topics)

			all, err := decodeBrokerStats(bytes.NewReader(content), allOfThem)
			require.NoError(t, err)
			require.Equal(t, referenceBulk(t, content), all)
		})
	}
}

// referenceBulk decodes the whole answer at once.
func referenceBulk(t *testing.T, content []byte) map[string]backlog.BulkTopic {
	t.Helper()
	var namespaces map[string]map[string]map[string]map[string]struct {
		MsgInCount    int64 `json:"msgInCount"`
		Subscriptions map[string]struct {
			MsgBacklog int64             `json:"msgBacklog"`
			Consumers  []json.RawMessage `json:"consumers"`
		} `json:"subscriptions"`
	}
	require.NoError(t, json.Unmarshal(content, &namespaces))
	all := map[string]backlog.BulkTopic{}
	for _, bundles := range namespaces {
		for _, domains := range bundles {
			for name, topic := range domains["persistent"] {
				subscriptions := map[string]backlog.BulkSubscription{}
				for s, answer := range topic.Subscriptions {
					subscriptions[s] = backlog.BulkSubscription{BacklogEntries: answer.MsgBacklog, Consumers: len(answer.Consumers)}
				}
				all[name] = backlog.BulkTopic{PublishedMessages: topic.MsgInCount, Subscriptions: subscriptions}
			}
		}
	}
	return all
}

func TestFetchBulkReadsEveryBroker(t *testing.T) {
	first, second := newFakeBroker(t), newFakeBroker(t)
	first.on(allHosts, answers(`["`+first.host()+`","`+second.host()+`"]`))
	first.on(allTopics, answers(loaded("orders", 3)))
	second.on(allTopics, answers(loaded("parts-partition-12", 4)))
	cluster := backlog.Cluster{AdminURL: first.URL}
	stats := newBrokerStats(t, BrokerStatsConfig{Wanted: everyTopic}, first, second)
	stats.now = func() time.Time { return time.Unix(1000, 0) }
	sample, err := stats.FetchBulk(t.Context(), cluster)
	require.NoError(t, err)
	require.Equal(t, backlog.BulkSample{At: time.Unix(940, 0), Topics: map[string]backlog.BulkTopic{
		"persistent://public/default/orders": bulkTopic(3), "persistent://public/default/parts-partition-12": bulkTopic(4),
	}}, sample)

	first.on(allHosts, answers(`["`+second.host()+`"]`)) // one broker, for the map
	read := map[backlog.Topic]bool{}
	stats = newBrokerStats(t, BrokerStatsConfig{
		Wanted: func(topic backlog.Topic) bool {
			read[topic] = true
			return topic.Name == "persistent://public/default/parts"
		},
	}, first, second)
	sample, err = stats.FetchBulk(t.Context(), cluster)
	require.NoError(t, err)
	require.Len(t, sample.Topics, 1)
	require.Equal(t, map[backlog.Topic]bool{{Cluster: cluster, Name: "persistent://public/default/parts"}: true}, read)
}

func TestFetchBulkWhileBrokersFail(t *testing.T) {
	superuser := says(http.StatusUnauthorized, "This operation requires super-user access")
	tests := map[string]struct {
		hosts, first, second http.HandlerFunc
		want                 map[string]backlog.BulkTopic
		reason               error
		text                 string
	}{
		"one does not answer: its topics are not mentioned": {
			first: says(http.StatusInternalServerError, "boom"), second: answers(loaded("orders", 3)),
			want: map[string]backlog.BulkTopic{"persistent://public/default/orders": bulkTopic(3)},
		},
		"a topic moved: the larger backlog counts": {
			first: answers(loaded("orders", 3)), second: answers(loaded("orders", 5)),
			want: map[string]backlog.BulkTopic{"persistent://public/default/orders": bulkTopic(5)},
		},
		"a broker that has just started": {
			first: answers(`{}`), second: answers(loaded("orders", 3)),
			want: map[string]backlog.BulkTopic{"persistent://public/default/orders": bulkTopic(3)},
		},
		"none answers": {
			first: says(http.StatusInternalServerError, "boom"), second: says(http.StatusInternalServerError, "boom"),
			reason: backlog.ErrUnavailable, text: `says "boom" of all topics of `,
		},
		"no superuser": {
			hosts: superuser, reason: backlog.ErrForbidden,
			text: `says "This operation requires super-user access" of the list of brokers: ` +
				`grant superuser rights (superUserRoles of the brokers) to the role of the credentials`,
		},
		"an empty list of brokers": {hosts: answers(`[]`), reason: backlog.ErrProtocol, text: "it names no broker"},
		"a broker without a name":  {hosts: answers(`[""]`), reason: backlog.ErrProtocol, text: `broker "" is not host:port`},
		"a broker that is not allowed": {
			hosts: answers(
				`["elsewhere:8080"]`), reason: backlog.ErrHostNotAllowed, text: "elsewhere:8080 is not an allowed Pulsar host",
		},
		"an incomplete answer": {
			first: answers(
				`{"public/default":{"0x0":{"persi`), second: answers(`[]`), reason: backlog.ErrProtocol, text: "cut off",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			first, second := newFakeBroker(t), newFakeBroker(t)
			if tt.hosts == nil {
				tt.hosts = answers(`["` + first.host() + `","` + second.host() + `"]`)
			}
			first.on(allHosts, tt.hosts)
			first.on(allTopics, tt.first)
			second.on(allTopics, tt.second)
			sample, err := newBrokerStats(t, BrokerStatsConfig{Wanted: everyTopic}, first, second).FetchBulk(t.Context(),
				backlog.Cluster{AdminURL: first.URL})
			if tt.reason != nil {
				require.ErrorIs(t, err, tt.reason)
				require.ErrorContains(t, err, tt.text)
				require.Zero(t, sample)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, sample.Topics)
		})
	}
}

func TestInvalidBulkTopicsAreLeftOut(t *testing.T) {
	for name, topic := range map[string]string{
		"no counter":         `{"subscriptions":{}}`,
		"a negative counter": `{"msgInCount":-1,"subscriptions":{}}`,
		"no subscriptions":   `{"msgInCount":1}`,
		"no backlog":         `{"msgInCount":1,"subscriptions":{"s":{"consumers":[]}}}`,
		"a negative backlog": `{"msgInCount":1,"subscriptions":{"s":{"msgBacklog":-1}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			answer := `{"a/b":{"0x0":{"non-persistent":{"non-persistent://a/b/x":[1]},"persistent":{"persistent://a/b/bad":` +
				topic +
				`,"persistent://a/b/good":{"msgInCount":1,"subscriptions":{}}}}}}`
			topics, err := decodeBrokerStats(strings.NewReader(answer), allOfThem)
			require.NoError(t, err)
			require.Equal(t, map[string]backlog.BulkTopic{
				"persistent://a/b/good": {PublishedMessages: 1, Subscriptions: map[string]backlog.BulkSubscription{}},
			}, topics)
		})
	}
}

func TestBrokerStatsNeedsAValidConfiguration(t *testing.T) {
	source := newSource(t, Config{})
	_, err := source.BrokerStats(BrokerStatsConfig{})
	require.ErrorContains(t, err, "wanted is missing")
	stats := newBrokerStats(t, BrokerStatsConfig{Wanted: everyTopic})
	_, err = stats.FetchBulk(t.Context(), backlog.Cluster{AdminURL: "b:8080"})
	require.ErrorContains(t, err, "the Pulsar admin URL must look like")
}

func FuzzDecodeBrokerStats(f *testing.F) {
	addFixtures(f, "*-broker-stats-*.json")
	f.Add([]byte(loaded("orders", 1)))
	f.Fuzz(func(t *testing.T, content []byte) {
		kept := func(name string) bool { return !strings.HasSuffix(name, "__change_events") }
		topics, err := decodeBrokerStats(bytes.NewReader(content), kept)
		if err != nil {
			require.Nil(t, topics)
			return
		}
		for name, topic := range topics {
			require.True(t, kept(name))
			require.GreaterOrEqual(t, topic.PublishedMessages, int64(0))
			for _, s := range topic.Subscriptions {
				require.False(t, s.BacklogEntries < 0 || s.Consumers < 0)
			}
		}
	})
}

func FuzzDecodeBrokers(f *testing.F) {
	f.Add([]byte(`["127.0.0.1:15658"]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		urls, err := decodeBrokers(bytes.NewReader(content), "https")
		require.Equal(t, err == nil, len(urls) > 0)
		for _, u := range urls {
			_, err := backlog.ParseAdminURL(u.String())
			require.NoError(t, err)
		}
		require.NotErrorIs(t, err, backlog.ErrProtocol, "reasons are given by the client")
	})
}

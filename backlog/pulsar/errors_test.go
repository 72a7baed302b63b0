// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestAnswersBecomeReasons(t *testing.T) {
	const secret = "s3cret-token"
	long := strings.Repeat("x", 300)
	tests := map[string]struct {
		answer    http.HandlerFunc
		anonymous bool
		token     string // in place of the secret
		reason    error
		// text has BROKER for the host of the broker.
		text string
	}{
		"401 in HTML with a token is a bad token": {
			answer: replays(t, "4.0.8-401-no-token.txt"), reason: backlog.ErrUnauthenticated,
			text: "credentials refused: BROKER does not accept the token: is it expired, or signed with another key?",
		},
		"401 in HTML with a token of the past says when it expired": {
			answer: replays(t, "4.0.8-401-no-token.txt"), reason: backlog.ErrUnauthenticated,
			token: "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":86400}`)) + ".e30",
			text: "credentials refused: BROKER does not accept the token, which expired at 1970-01-02T00:00:00Z: " +
				"put a new one in its place",
		},
		"401 in HTML without a token requires one": {
			answer: replays(t, "4.0.8-401-no-token.txt"), anonymous: true, reason: backlog.ErrUnauthenticated,
			text: "credentials refused: BROKER requires credentials and none are configured: give the adapter a token",
		},
		"401 in JSON is a missing permission": {
			answer: says(401,
				"Unauthorized to validateTopicOperation for operation [GET_STATS] on topic [persistent://public/default/orders]"), reason: backlog.ErrForbidden,
			text: `permission missing: BROKER says "Unauthorized to validateTopicOperation for operation [GET_STATS] on topic ` +
				`[persistent://public/default/orders]": ` +
				`grant consume on namespace public/default to the role of the credentials`,
		},
		"401 in JSON without Pulsar's reason is a bad token": {
			answer: sends(401, "application/json", `{"error":"unauthorized"}`), reason: backlog.ErrUnauthenticated,
			text: "credentials refused: BROKER does not accept the token: is it expired, or signed with another key?",
		},
		"403 in JSON is a missing permission": {
			answer: replays(t, "4.0.8-403-role-without-permission-topics.txt"), reason: backlog.ErrForbidden,
			text: `permission missing: BROKER says "Unauthorized to validateNamespaceOperation for operation [GET_TOPICS] on ` +
				`namespace [public/default]" of ` +
				`persistent://public/default/orders: grant consume on namespace public/default to the role of the credentials`,
		},
		"403 in other words comes from something in between": {
			answer: sends(403, "text/plain", "RBAC: access denied"), reason: backlog.ErrForbidden,
			text: "permission missing: BROKER answered 403 for persistent://public/default/orders, not in Pulsar's words: " +
				"does a proxy or a mesh in between refuse it?",
		},
		"404 in JSON is a missing topic": {
			answer: says(404, "Topic persistent://public/default/orders not found"), reason: backlog.ErrTopicNotFound,
			text: `topic not found: BROKER says "Topic persistent://public/default/orders not found": create it or correct its name`,
		},
		"404 in JSON that does not name the topic": {
			answer: says(404, "Topic partitions were not yet created"), reason: backlog.ErrTopicNotFound,
			text: `topic not found: BROKER says "Topic partitions were not yet created" of persistent://public/default/orders: create it or correct its name`,
		},
		"404 in HTML is not Pulsar": {
			answer: sends(404, "text/html", "<html>not found</html>"), reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER answered 404 for persistent://public/default/orders: is http://BROKER a Pulsar " +
				"admin service?",
		},
		"404 in foreign JSON is not Pulsar": {
			answer: sends(404, "application/json", `{"kind":"Status","code":404}`), reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER answered 404 for persistent://public/default/orders: is http://BROKER a Pulsar " +
				"admin service?",
		},
		"412 is a topic without an owner now": {
			answer: says(412, "Failed to find ownership"), reason: backlog.ErrUnavailable,
			text: `unavailable: BROKER says "Failed to find ownership" of persistent://public/default/orders: retried soon`,
		},
		"429 is too many requests": {
			answer: sends(429, "text/html", ""), reason: backlog.ErrUnavailable,
			text: "unavailable: BROKER answered 429 for persistent://public/default/orders: too many requests for its " +
				"httpRequestsMaxPerSecond",
		},
		"500 with a stack trace shows none of it": {
			answer: sends(500, "text/plain",
				"\n --- An unexpected error occurred in the server ---\n\njava.lang..."), reason: backlog.ErrUnavailable,
			text: "unavailable: BROKER answered 500 for persistent://public/default/orders: retried soon",
		},
		"503 is unavailable": {
			answer: says(503, "Broker is starting"), reason: backlog.ErrUnavailable,
			text: `unavailable: BROKER says "Broker is starting" of persistent://public/default/orders: retried soon`,
		},
		"200 in HTML is not Pulsar": {
			answer: sends(200, "text/html", "<html>hello</html>"), reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER did not send the state of persistent://public/default/orders (it sent content " +
				"type text/html): is http://BROKER a Pulsar admin service?",
		},
		"200 with broken JSON is not Pulsar": {
			answer: answers(`{"msgInCounter":1,`), reason: backlog.ErrProtocol,
			text: "unexpected answer: the answer of BROKER for persistent://public/default/orders is cut off: is " +
				"http://BROKER a Pulsar admin service?",
		},
		"200 with other JSON is not Pulsar": {
			answer: answers(`{}`), reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER did not send the state of persistent://public/default/orders (msgInCounter is " +
				"missing): is http://BROKER a Pulsar admin service?",
		},
		"a backlog above 2^53 is implausible": {
			answer: answers(subscription(map[string]any{"msgBacklog": json.Number("9223372036854775807")})),
			reason: backlog.ErrImplausible,
			text: "implausible answer: BROKER says of persistent://public/default/orders: subscription a/b/c: " +
				"msgBacklog is 9223372036854775807, above 2^53, which nothing reaches that Pulsar counts: " +
				"is there a proxy in between that alters answers?",
		},
		"204 is not Pulsar": {
			answer: func(w http.ResponseWriter,
				_ *http.Request,
			) {
				w.WriteHeader(http.StatusNoContent)
			}, reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER answered 204 for persistent://public/default/orders: is http://BROKER a Pulsar " +
				"admin service?",
		},
		"a redirect to nowhere is not Pulsar": {
			answer: func(w http.ResponseWriter,
				_ *http.Request,
			) {
				w.WriteHeader(http.StatusTemporaryRedirect)
			}, reason: backlog.ErrProtocol,
			text: "unexpected answer: BROKER answered 307 for persistent://public/default/orders: is http://BROKER a Pulsar " +
				"admin service?",
		},
		"long words are cut, and lines after the first": {
			answer: says(404, long+`\nat java`), reason: backlog.ErrTopicNotFound,
			text: `topic not found: BROKER says "` + long[:200] +
				`..." of persistent://public/default/orders: create it or correct its name`,
		},
		"a server that echoes the token does not get it into the text": {
			answer: says(404, "no such "+secret), reason: backlog.ErrTopicNotFound,
			text: `topic not found: BROKER says "no such [token]" of persistent://public/default/orders: create it or correct its name`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(notPartitioned))
			broker.on("orders/stats", tt.answer)
			config := Config{Own: ownToken(t, cmp.Or(tt.token, secret))}
			if tt.anonymous {
				config.Own.TokenFile = ""
			}
			sample, err := newSource(t, config, broker).Fetch(t.Context(), broker.topic("orders"),
				backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, tt.reason)
			require.Equal(t, strings.ReplaceAll(tt.text, "BROKER", broker.host()), err.Error())
			require.Zero(t, sample)
		})
	}
}

func TestIncompleteAnswersSayWhatTheyLack(t *testing.T) {
	gone := string(fixture(t, "4.0.8-partitioned-stats-one-of-3-missing.json"))
	allGone := string(fixture(t, "4.0.8-partitioned-stats-all-missing.json"))
	const fix = ": a broker did not answer, or they were deleted (pulsar-admin topics create-missed-partitions)"
	tests := map[string]struct {
		answer string
		text   string
		there  []int // partitions that are there nevertheless
	}{
		"one partition is missing":                       {gone, "1 of 3 partitions are missing (1)" + fix, []int{0, 2}},
		"all partitions are missing, with a placeholder": {allGone, "3 of 3 partitions are missing (0, 1, 2)" + fix, nil},
		"no partition exists": {
			partitioned("gone", 3), "3 of 3 partitions are missing (0, 1, 2)" + fix,
			nil,
		},
		"many partitions are missing": {
			partitioned("gone", 9, 4),
			"8 of 9 partitions are missing (0, 1, 2, 3, 5, ...)" + fix,
			[]int{4},
		},
		"one partition twice in two spellings": {strings.Replace(partitioned("gone", 3, 0, 1, 9), "partition-9",
			"partition-01", 1), "1 of 3 partitions are missing (2)" + fix, []int{0, 1}},
		"one is of another topic": {strings.Replace(partitioned("gone", 3, 0, 1, 2), "gone-partition-2",
			"other-partition-2", 1), "1 of 3 partitions are missing (2)" + fix, []int{0, 1}},
		"one partition too many": {
			partitioned("gone", 3, 0, 1, 2, 3),
			"it names partitions that the topic should not have", nil,
		},
		"fewer partitions than known": {partitioned("gone", 2, 0, 1), "2 partitions where 3 were known", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("gone/partitions", answers(`{"partitions":3}`))
			broker.on("gone/partitioned-stats", answers(tt.answer))
			source := newSource(t, Config{}, broker)
			for range 2 { // with the count just read, and from the cache
				sample, err := source.Fetch(t.Context(), broker.topic("gone"), backlog.Request{Detail: backlog.Slim})
				if tt.there != nil {
					require.NoError(t, err)
					require.ErrorIs(t, sample.Incomplete, backlog.ErrPartial)
					require.EqualError(t, sample.Incomplete, "partial answer: "+tt.text)
					var there []int
					for _, partition := range sample.Partitions {
						there = append(there, partition.Index)
					}
					require.Equal(t, tt.there, there)
					continue
				}
				require.ErrorIs(t, err, backlog.ErrPartial)
				require.Equal(t, "partial answer: persistent://public/default/gone from "+broker.host()+": "+tt.text, err.Error())
				require.Zero(t, sample)
			}
		})
	}
}

func TestInvalidNamesAndURLs(t *testing.T) {
	refuses := func(topic backlog.Topic, reason error, text string) {
		t.Helper()
		_, err := newSource(t, Config{}).Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
		require.ErrorIs(t, err, reason)
		require.EqualError(t, err, text)
	}
	at := func(name string) backlog.Topic {
		return backlog.Topic{Cluster: backlog.Cluster{AdminURL: "http://broker:8080"}, Name: name}
	}
	for _, name := range []string{
		"orders", "public/default/orders", "segment://public/default/orders", "persistent://a/b/c/d", "persistent://a/b/",
		"persistent:///b/c", "persistent://a/b/..", "persistent://../../clusters", "persistent://a/b?c=d/e",
	} {
		refuses(at(name), backlog.ErrUnsupported,
			`not supported: topic name "`+name+`" must look like persistent://tenant/namespace/name`)
	}
	refuses(at("non-persistent://a/b/c"), backlog.ErrUnsupported,
		"not supported: non-persistent://a/b/c keeps no backlog to scale on: use a persistent:// topic")
	for _, url := range []string{
		"pulsar://broker:6650", "broker:8080", "http://broker:8080/admin/v2", "http://me:hunter2@broker:8080",
		"http://broker:8080?a=b", "\x00",
	} {
		refuses(backlog.Topic{Cluster: backlog.Cluster{AdminURL: url}, Name: "persistent://a/b/c"}, backlog.ErrProtocol,
			"the Pulsar admin URL must look like http://pulsar-broker.pulsar:8080, with no path and no credentials")
	}
}

func TestMissingAnswersHaveAShortCause(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := newFakeBroker(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := listener.Addr().String()
	require.NoError(t, listener.Close())
	const topic = "persistent://public/default/orders"
	tests := map[string]struct {
		url  string
		text string
	}{
		"a closed port": {
			"http://" + closed,
			"unreachable: " + closed + " for " + topic + ": connection refused",
		},
		"the name is unknown": {
			"http://broker.invalid:8080",
			"unreachable: broker.invalid:8080 for " + topic + ": no such host",
		},
		"the certificate is of an unknown signer": {
			secure.URL,
			"unreachable: " + secure.Listener.Addr().String() + " for " + topic +
				": its certificate is signed by an unknown authority: give the adapter the CA file",
		},
		"https to a port that speaks http": {
			"https://" + plain.host(),
			"unreachable: " + plain.host() + " for " + topic + ": it does not speak TLS: use http://",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			source := newSource(t, Config{AllowedHosts: []string{"127.0.0.1", "broker.invalid"}})
			_, err := source.Fetch(t.Context(), backlog.Topic{Cluster: backlog.Cluster{AdminURL: tt.url}, Name: topic},
				backlog.Request{Detail: backlog.Slim})

			require.ErrorIs(t, err, backlog.ErrUnreachable)
			require.Equal(t, tt.text, err.Error())
		})
	}
}

func TestMetricsCountEachResult(t *testing.T) {
	registry := prometheus.NewRegistry()
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", says(503, "starting"), answers(`{"msgInCounter":3,"subscriptions":{}}`))
	broker.on("orders/internalStats", says(401, "no"))
	source := newSource(t, Config{Registerer: registry}, broker)
	_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Full})
	require.NoError(t, err)
	_, err = source.Fetch(t.Context(), broker.topic("nope"), backlog.Request{Detail: backlog.Full})
	require.ErrorIs(t, err, backlog.ErrTopicNotFound)

	require.Equal(t, map[string]float64{
		"partitions ok": 1, "partitions topic_not_found": 1,
		"stats unavailable": 1, "stats ok": 1,
		"internal-stats forbidden": 1,
	}, counted(t, registry))
}

// counted returns the request counter by "call result".
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	return countedIn(t, registry, "pulsar_autoscaler_source_requests_total")
}

func countedIn(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			counts[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetCounter().GetValue()
		}
	}
	return counts
}

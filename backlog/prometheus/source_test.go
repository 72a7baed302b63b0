// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// scrapedAt is when the fake scraped, and askedAt when it is asked.
const (
	scrapedAt = 1000.25
	askedAt   = 1020
)

// fakePrometheus has scraped the text of a broker's /metrics, and answers the queries of this package as the HTTP API
// documents it.
//
// Source: https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries.
type fakePrometheus struct {
	*httptest.Server
	series map[string][]map[string]string // labels; the value is under ""

	mu sync.Mutex
	// queries and headers are guarded by mu.
	queries []string
	headers []http.Header
}

var (
	plainQuery  = regexp.MustCompile(`^(\w+)\{(.*)\}$`)
	oldestQuery = regexp.MustCompile(`^min\(timestamp\((\w+)\{(.*)\}\)\)$`)
)

func newFakePrometheus(t *testing.T, text string) *fakePrometheus {
	t.Helper()
	p := &fakePrometheus{series: map[string][]map[string]string{}}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{"__name__": name, "instance": "broker-0:8080", "": value(metric)}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			p.series[name] = append(p.series[name], labels)
		}
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func value(metric *dto.Metric) string {
	number := metric.GetUntyped().GetValue() + metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
	return strconv.FormatFloat(number, 'f', -1, 64)
}

func (p *fakePrometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	p.mu.Lock()
	p.queries = append(p.queries, query)
	p.headers = append(p.headers, r.Header)
	p.mu.Unlock()
	type result struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	results := []result{}
	add := func(metric map[string]string, value string) {
		results = append(results, result{Metric: metric, Value: [2]any{askedAt, value}})
	}
	if r.URL.Path != "/api/v1/query" || r.FormValue("time") != strconv.Itoa(askedAt) {
		http.Error(w, "unexpected "+r.URL.String(), http.StatusTeapot)
		return
	}
	if parts := oldestQuery.FindStringSubmatch(query); parts != nil {
		if len(p.selected(parts[1], parts[2])) > 0 {
			add(map[string]string{}, fmt.Sprint(scrapedAt))
		}
	} else if parts := plainQuery.FindStringSubmatch(query); parts != nil {
		for _, labels := range p.selected(parts[1], parts[2]) {
			metric := map[string]string{}
			for name, value := range labels {
				if name != "" {
					metric[name] = value
				}
			}
			add(metric, labels[""])
		}
	} else {
		http.Error(w, "unexpected "+query, http.StatusTeapot)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": "success",
		"data":   map[string]any{"resultType": "vector", "result": results},
	})
}

// selected knows the one matcher of this package, and label="value".
func (p *fakePrometheus) selected(name, matchers string) []map[string]string {
	var found []map[string]string
	for _, labels := range p.series[name] {
		matches := true
		for matcher := range strings.SplitSeq(matchers, ",") {
			label, text, _ := strings.Cut(matcher, "=")
			if matcher == topicSelector {
				matches = matches && strings.HasPrefix(labels["topic"], "persistent://")
			} else {
				matches = matches && strconv.Quote(labels[label]) == text
			}
		}
		if matches {
			found = append(found, labels)
		}
	}
	return found
}

func fixture(t testing.TB, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	return string(content)
}

func newSource(t *testing.T, config Config) *Source {
	t.Helper()
	if config.Registerer == nil {
		config.Registerer = prometheus.NewRegistry()
	}
	source, err := New(config)
	require.NoError(t, err)
	t.Cleanup(source.Close)
	source.now = func() time.Time { return time.Unix(askedAt, 0) }
	return source
}

var cluster = backlog.Cluster{AdminURL: "http://broker:8080"}

func TestFetchBulkOfARealBrokersMetrics(t *testing.T) {
	resize := func(entries int64, consumers int) backlog.BulkTopic {
		return backlog.BulkTopic{PublishedMessages: 7, Subscriptions: map[string]backlog.BulkSubscription{
			"public/default/resize": {BacklogEntries: entries, Consumers: consumers},
		}}
	}
	for name, file := range map[string]string{
		"partitions in the topic's name": "4.0.8-metrics.txt", "partitions in a label": "4.0.8-metrics-split-labels.txt",
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			fake := newFakePrometheus(t, fixture(t, file))
			asked := map[string]bool{}
			source := newSource(t, Config{Registerer: registry, URL: fake.URL + "/", Wanted: func(topic backlog.Topic) bool {
				asked[topic.Name] = true
				require.Equal(t, cluster, topic.Cluster)
				return topic.Name == "persistent://public/default/orders" || topic.Name == "persistent://public/default/parts"
			}})
			sample, err := source.FetchBulk(t.Context(), cluster)
			require.NoError(t, err)
			require.Equal(t, time.UnixMilli(1000_250), sample.At, "as old as the oldest scrape")
			require.Equal(t, map[string]backlog.BulkTopic{
				"persistent://public/default/orders":            resize(6, 1),
				"persistent://public/default/parts-partition-0": resize(7, 0),
				"persistent://public/default/parts-partition-1": resize(7, 0),
			}, sample.Topics)
			require.True(t, asked["persistent://public/default/__change_events"])
			require.InDelta(t, 4, testutil.ToFloat64(source.metrics.requests.WithLabelValues("ok")), 0)
		})
	}
}

const oneTopic = `pulsar_in_messages_total{cluster="%[1]s",topic="persistent://a/b/c"} %[2]d
pulsar_subscription_back_log{cluster="%[1]s",topic="persistent://a/b/c",subscription="s"} %[2]d
pulsar_subscription_consumers_count{cluster="%[1]s",topic="persistent://a/b/c",subscription="s"} %[2]d
`

// lines joins expositions and sorts their lines, since a family may not be split.
func lines(texts ...string) string {
	sorted := strings.Split(strings.Join(texts, ""), "\n")
	slices.Sort(sorted)
	return strings.TrimLeft(strings.Join(sorted, "\n"), "\n") + "\n"
}

func TestClustersAreToldApart(t *testing.T) {
	fake := newFakePrometheus(t, lines(fmt.Sprintf(oneTopic, "eu", 3), fmt.Sprintf(oneTopic, "us", 4)))

	_, err := newSource(t, Config{URL: fake.URL}).FetchBulk(t.Context(), cluster)
	require.ErrorIs(t, err, backlog.ErrUnsupported)
	require.ErrorContains(t, err, "has several Pulsar clusters (eu and us among them): give the selector of each")

	source := newSource(t, Config{URL: fake.URL, Selectors: map[string]string{cluster.AdminURL: `cluster="us"`}})
	sample, err := source.FetchBulk(t.Context(), cluster)
	require.NoError(t, err)
	require.Equal(t, map[string]backlog.BulkTopic{"persistent://a/b/c": {
		PublishedMessages: 4, Subscriptions: map[string]backlog.BulkSubscription{"s": {BacklogEntries: 4, Consumers: 4}},
	}}, sample.Topics)
	require.Equal(t, `min(timestamp(pulsar_in_messages_total{topic=~"persistent://.+",cluster="us"}))`,
		fake.queries[len(fake.queries)-4])
}

func TestOnePrometheusSpeaksForOneCluster(t *testing.T) {
	fake := newFakePrometheus(t, fmt.Sprintf(oneTopic, "eu", 3))
	source := newSource(t, Config{URL: fake.URL, Selectors: map[string]string{"http://asia:8080": `cluster="eu"`}})
	other := backlog.Cluster{AdminURL: "http://standby:8080"} // with topics of the same names

	_, err := source.FetchBulk(t.Context(), cluster)
	require.NoError(t, err)
	_, err = source.FetchBulk(t.Context(), backlog.Cluster{AdminURL: cluster.AdminURL, Access: "somebody's"})
	require.NoError(t, err, "it is the same cluster")
	_, err = source.FetchBulk(t.Context(), backlog.Cluster{AdminURL: "http://asia:8080"})
	require.NoError(t, err, "it has a selector of its own")

	asked := len(fake.queries)
	for _, one := range []backlog.Cluster{other, cluster} {
		_, err = source.FetchBulk(t.Context(), one)
		require.ErrorIs(t, err, backlog.ErrUnsupported)
		require.ErrorContains(t, err,
			"it is not known which Pulsar cluster Prometheus at "+strings.TrimPrefix(fake.URL, "http://")+
				" has: http://broker:8080 or http://standby:8080; give the selector of each")
	}
	require.Len(t, fake.queries, asked)
}

func TestABulkAnswerKeepsItsAgeWhenTheClockIsSet(t *testing.T) {
	fake := newFakePrometheus(t, fmt.Sprintf(oneTopic, "eu", 3))
	source := newSource(t, Config{URL: fake.URL})
	start := time.Now()
	source.now = func() time.Time { return start.Add(time.Unix(askedAt, 0).Sub(start)) } // with a monotonic clock
	sample, err := source.FetchBulk(t.Context(), cluster)
	require.NoError(t, err)
	require.Equal(t, source.now().Add(-(askedAt*1000-scrapedAt*1000)*time.Millisecond).String(), sample.At.String(),
		"also by the clock that nobody sets: m=... in the text")
	require.Contains(t, sample.At.String(), " m=")
}

func TestNothingScrapedIsNotNothingWaiting(t *testing.T) {
	fake := newFakePrometheus(t, "pulsar_topics_count{cluster=\"a\"} 7\n")
	_, err := newSource(t, Config{URL: fake.URL}).FetchBulk(t.Context(), cluster)
	require.ErrorIs(t, err, backlog.ErrNoData)
	require.ErrorContains(t, err, "does it scrape the brokers, and have they exposeTopicLevelMetricsInPrometheus=true?")
}

func TestSeriesThatSayTooLittleAreLeftOut(t *testing.T) {
	const topic = `cluster="a",topic="persistent://a/b/c"`
	good := backlog.BulkSubscription{BacklogEntries: 5, Consumers: 2}
	base := lines("pulsar_in_messages_total{" + topic + "} 9\n" + `pulsar_subscription_back_log{` + topic +
		`,subscription="good"} 5` + "\n" +
		`pulsar_subscription_consumers_count{` + topic + `,subscription="good"} 2` + "\n")
	tests := map[string]struct {
		more string
		want map[string]backlog.BulkSubscription
	}{
		"a subscription without consumers counted": {more: `pulsar_subscription_back_log{` + topic + `,subscription="s"} 1`},
		"a subscription without a backlog": {more: `pulsar_subscription_consumers_count{` + topic +
			`,subscription="s"} 1`},
		"a backlog below 0": {
			more: `pulsar_subscription_back_log{` + topic + `,subscription="s"} -1` + "\n" +
				`pulsar_subscription_consumers_count{` + topic + `,subscription="s"} 1`,
		},
		"a backlog that is no number": {
			more: `pulsar_subscription_back_log{` + topic + `,subscription="s"} NaN` + "\n" +
				`pulsar_subscription_consumers_count{` + topic + `,subscription="s"} 1`,
		},
		"a topic that was not counted": {more: `pulsar_subscription_back_log{cluster="a",topic="persistent://a/b/d",subscription="s"} 1`},
		"a topic without backlog":      {more: `pulsar_subscription_back_log{cluster="a",topic="non-persistent://a/b/d",subscription="s"} 1`},
		"a partition that is none":     {more: `pulsar_in_messages_total{cluster="a",topic="persistent://a/b/d",partition="x"} 1`},
		"two brokers while a topic moves: the larger counts": {
			more: `pulsar_subscription_back_log{` + topic + `,subscription="good",pod="b"} 8` + "\n" +
				`pulsar_in_messages_total{` + topic + `,pod="b"} 1`,
			want: map[string]backlog.BulkSubscription{"good": {BacklogEntries: 8, Consumers: 2}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.want == nil {
				tt.want = map[string]backlog.BulkSubscription{"good": good}
			}
			fake := newFakePrometheus(t, lines(base, tt.more+"\n"))
			sample, err := newSource(t, Config{URL: fake.URL}).FetchBulk(t.Context(), cluster)
			require.NoError(t, err)
			require.Equal(t, map[string]backlog.BulkTopic{"persistent://a/b/c": {PublishedMessages: 9, Subscriptions: tt.want}},
				sample.Topics)
		})
	}
}

func TestAnswersBecomeReasons(t *testing.T) {
	sends := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "http://elsewhere:9090/")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	tests := map[string]struct {
		answer       http.HandlerFunc
		reason       error
		result, text string
	}{
		"the credentials": {
			sends(401, "no"), backlog.ErrUnauthenticated, "unauthenticated",
			"does not accept the credentials",
		},
		"the permission": {sends(403, "no"), backlog.ErrForbidden, "forbidden", "refuses queries of this token"},
		"a redirect, which would show the token": {
			sends(302, ""), backlog.ErrProtocol, "protocol", "redirects: give the URL that it redirects to",
		},
		"too many requests": {sends(429, ""), backlog.ErrUnavailable, "unavailable", "answered 429: client error: 429"},
		"a query that took too long": {
			sends(503, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`),
			backlog.ErrUnavailable, "unavailable", "answered 503",
		},
		"a selector that cannot be read": {
			sends(400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:5: parse error"}`),
			backlog.ErrProtocol, "protocol", `answered 400: invalid parameter "query": 1:5: parse error`,
		},
		"another API": {sends(404, "<html>"), backlog.ErrProtocol, "protocol", "answered 404: client error: 404"},
		"no JSON":     {sends(200, "<html>"), backlog.ErrProtocol, "protocol", "answered 200"},
		"no vector": {
			sends(200, `{"status":"success","data":{"resultType":"scalar","result":[1020,"1"]}}`),
			backlog.ErrProtocol, "protocol", "answered with a scalar instead of a vector",
		},
		"a time that is none": {
			sends(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1020,"NaN"]}]}}`),
			backlog.ErrProtocol, "ok", "gives NaN for a time",
		},
		"too much": {
			sends(200, `{"status":"`+strings.Repeat("x", 2000)), backlog.ErrProtocol, "protocol",
			"sent more than 1024 bytes: raise the limit",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			registry := prometheus.NewRegistry()
			source := newSource(t, Config{Registerer: registry, URL: server.URL, MaxAnswerBytes: 1024})
			sample, err := source.FetchBulk(t.Context(), cluster)
			require.Zero(t, sample)
			require.ErrorIs(t, err, tt.reason)
			require.ErrorContains(t, err, tt.text)
			require.Positive(t, testutil.ToFloat64(source.metrics.requests.WithLabelValues(tt.result)))
		})
	}
}

func TestAPrometheusThatDoesNotAnswer(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := newSource(t, Config{URL: gone.URL}).FetchBulk(t.Context(), cluster)
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	require.NotContains(t, err.Error(), "query", "the URL is not repeated")

	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = bytes.NewBuffer(nil).ReadFrom(r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	_, err = newSource(t, Config{URL: hangs.URL, Timeout: 100 * time.Millisecond}).FetchBulk(t.Context(), cluster)
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	require.ErrorContains(t, err, "no answer in time")
}

func TestTheTokenIsReadForEveryQueryAndNeverShown(t *testing.T) {
	fake := newFakePrometheus(t, fixture(t, "4.0.8-metrics.txt"))
	path := filepath.Join(t.TempDir(), "token")
	source := newSource(t, Config{URL: fake.URL, TokenFile: path})
	_, err := source.FetchBulk(t.Context(), cluster)
	require.ErrorIs(t, err, backlog.ErrUnauthenticated)
	require.ErrorContains(t, err, "nothing was sent to Prometheus at")
	require.Empty(t, fake.queries)
	for content, problem := range map[string]string{
		"": "it is empty", "se cret": "it has a space",
		strings.Repeat("x", maxTokenBytes+1): "longer than",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err = source.FetchBulk(t.Context(), cluster)
		require.ErrorContains(t, err, problem)
		require.NotContains(t, err.Error(), "cret")
	}
	for _, token := range []string{"first", "second"} {
		require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
		_, err = source.FetchBulk(t.Context(), cluster)
		require.NoError(t, err)
		require.Equal(t, "Bearer "+token, fake.headers[len(fake.headers)-1].Get("Authorization"))
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	good := Config{Registerer: prometheus.NewRegistry(), URL: "http://prometheus:9090"}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, tt := range map[string]struct {
		change func(*Config)
		text   string
	}{
		"no registerer":    {func(c *Config) { c.Registerer = nil }, "registerer is missing"},
		"no URL":           {func(c *Config) { c.URL = "" }, `url is ""`},
		"another scheme":   {func(c *Config) { c.URL = "tcp://x:1" }, `url is "tcp://x:1"`},
		"credentials":      {func(c *Config) { c.URL = "http://me:secret@x:1" }, "no credentials"},
		"no URL at all":    {func(c *Config) { c.URL = "http://me:secret@x y" }, "url cannot be read"},
		"a short timeout":  {func(c *Config) { c.Timeout = time.Millisecond }, "timeout is 1ms"},
		"a long timeout":   {func(c *Config) { c.Timeout = time.Hour }, "timeout is 1h0m0s"},
		"small answers":    {func(c *Config) { c.MaxAnswerBytes = 1 }, "maxAnswerBytes is 1"},
		"huge answers":     {func(c *Config) { c.MaxAnswerBytes = 1 << 40 }, "maxAnswerBytes is 1099511627776"},
		"no CA file":       {func(c *Config) { c.CAFile = "/nowhere/ca.pem" }, "reading caFile"},
		"an empty CA file": {func(c *Config) { c.CAFile = empty }, "has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			config := good
			tt.change(&config)
			_, err := New(config)
			require.ErrorContains(t, err, tt.text)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func FuzzTopicName(f *testing.F) {
	f.Add("persistent://a/b/c", "-1")
	f.Add("persistent://a/b/c-partition-3", "")
	f.Add("persistent://a/b/c", "12")
	f.Fuzz(func(t *testing.T, topic, partition string) {
		name, ok := topicName(model.Metric{"topic": model.LabelValue(topic), "partition": model.LabelValue(partition)})
		if !ok {
			return
		}
		require.True(t, strings.HasPrefix(name, topic))
		require.True(t, strings.HasPrefix(name, "persistent://"))
		require.True(t, name == topic || withoutPartition(name) == topic)
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

var record = flag.Bool("record", false, "write what the running version of Pulsar answers to backlog/pulsar/testdata")

// fixtures is the directory of Pulsar's responses for the decoders' tests and fuzz targets.
var fixtures = filepath.Join("..", "..", "backlog", "pulsar", "testdata")

// recorder reads a real broker and its worker.
type recorder struct {
	*workerBroker
	ground *ground
}

// TestFixturesHaveTheFieldsThatPulsarAnswers compares each recorded response with that of the running version. With
// -record it writes them instead: make fixtures PULSAR=<version>.
func TestFixturesHaveTheFieldsThatPulsarAnswers(t *testing.T) {
	t.Parallel()
	w := onWorker(t, broker.Config{})
	reading := &ground{Broker: w.Broker, client: w.client, source: w.source, cluster: w.cluster}
	r := recorder{workerBroker: w, ground: reading}
	t.Run("topics", r.topics)
	t.Run("partitioned topics", r.partitioned)
	t.Run("listings", r.listings)
	t.Run("components", r.components)
}

const (
	slimQuery = "?getPreciseBacklog=false&subscriptionBacklogSize=false&getEarliestTimeInBacklog=false&excludePublishers=true&excludeConsumers=true"
	fullQuery = "?getPreciseBacklog=false&subscriptionBacklogSize=false&getEarliestTimeInBacklog=false&excludePublishers=true&excludeConsumers=false"
	allQuery  = "?getPreciseBacklog=true&subscriptionBacklogSize=true&getEarliestTimeInBacklog=true&excludePublishers=false&excludeConsumers=false"
)

func adminPath(topic string) string { return "/admin/v2/" + strings.Replace(topic, "://", "/", 1) }

// topics has topics without partitions, each with a different property.
func (r recorder) topics(t *testing.T) {
	g := r.ground
	idle := g.topic(t, "idle", 0)
	r.take(t, "topic-stats-idle", adminPath(idle)+"/stats"+fullQuery)

	batched := g.topic(t, "batched", 0)
	g.producer(t, batched, 50).send(500)
	g.consumer(t, pulsar.ConsumerOptions{
		Topic: batched, Type: pulsar.Shared, ReceiverQueueSize: 100, Properties: instance("public/default/f", 0), Name: "one",
	}).take(50)
	r.settled(t, batched,
		func(s backlog.SubscriptionSample) bool { return s.UnackedMessages > 50 && s.InReplayEntries > 0 })
	r.take(t, "topic-stats-batched", adminPath(batched)+"/stats"+fullQuery)
	r.take(t, "topic-stats-everything", adminPath(batched)+"/stats"+allQuery)
	r.take(t, "internalStats-batched", adminPath(batched)+"/internalStats")

	delayed := g.topic(t, "delayed", 0)
	p := g.producer(t, delayed, 1)
	p.send(30)
	p.sendLater(20, time.Hour)
	g.consumer(t, pulsar.ConsumerOptions{Topic: delayed, Type: pulsar.Shared, Name: "one"})
	r.settled(t, delayed,
		func(s backlog.SubscriptionSample) bool { return s.DelayedMessages == 20 && s.UnackedMessages == 30 })
	r.take(t, "topic-stats-delayed", adminPath(delayed)+"/stats"+fullQuery)

	blocked := g.topic(t, "blocked", 0)
	g.policy(t, blocked, "maxUnackedMessagesOnSubscription", "50")
	g.producer(t, blocked, 1).send(300)
	g.consumer(t, pulsar.ConsumerOptions{Topic: blocked, Type: pulsar.Shared, Name: "one"})
	r.settled(t, blocked, func(s backlog.SubscriptionSample) bool { return s.Blocked })
	r.take(t, "topic-stats-blocked", adminPath(blocked)+"/stats"+fullQuery)

	draining := g.topic(t, "draining", 0)
	g.producer(t, draining, 1).sendKeyed(20, 10)
	g.consumer(t, pulsar.ConsumerOptions{Topic: draining, Type: pulsar.KeyShared, Name: "one"}).take(20)
	g.consumer(t, pulsar.ConsumerOptions{Topic: draining, Type: pulsar.KeyShared, Name: "two"})
	r.settled(t, draining, func(s backlog.SubscriptionSample) bool { return s.DrainingHashes > 0 })
	r.take(t, "topic-stats-draining", adminPath(draining)+"/stats"+fullQuery)
}

// settled waits until the subscription "s" of every partition is as expected.
func (r recorder) settled(t *testing.T, topic string, wanted func(backlog.SubscriptionSample) bool) {
	t.Helper()
	eventually(t, "the subscriptions to be as expected", func() bool {
		sample, err := r.source.Fetch(t.Context(), backlog.Topic{Cluster: r.cluster, Name: topic},
			backlog.Request{Detail: backlog.Full})
		if err != nil {
			return false
		}
		for _, partition := range sample.Partitions {
			for _, s := range partition.Subscriptions {
				if s.Name == "s" && !wanted(s) {
					return false
				}
			}
		}
		return true
	})
}

// partitioned topics: whole, torn and gone.
func (r recorder) partitioned(t *testing.T) {
	g := r.ground
	require.NoError(t, g.CreateTopic(t.Context(), "never-loaded", 2))
	r.take(t, "partitioned-stats-unloaded",
		adminPath(broker.TopicName("never-loaded"))+"/partitioned-stats"+slimQuery+"&perPartition=true")

	topic := g.topic(t, "parts", 3)
	for i, messages := range []int{100, 10, 1} {
		p := g.producer(t, partitionName(topic, i), 1)
		p.send(messages)
		p.producer.Close()
	}
	for _, name := range []string{"one", "two"} {
		g.consumer(t, pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Failover, Name: name, ReceiverQueueSize: 10})
	}
	r.settled(t, topic,
		func(s backlog.SubscriptionSample) bool { return len(s.Consumers) == 2 && s.DeliveredMessages > 0 })
	path := adminPath(topic) + "/partitioned-stats"
	r.take(t, "partitioned-stats-slim", path+slimQuery+"&perPartition=true")
	r.take(t, "partitioned-stats-full", path+fullQuery+"&perPartition=true")
	r.take(t, "partitioned-stats-everything", path+allQuery+"&perPartition=true")
	r.take(t, "partitioned-internalStats-uneven", adminPath(topic)+"/partitioned-internalStats")

	torn := g.topic(t, "torn", 3)
	for i, name := range []string{"partitioned-stats-torn", "", "partitioned-stats-gone"} {
		g.demand(t, http.MethodDelete, adminPath(partitionName(torn, i))+"?force=true", "")
		if name != "" {
			r.take(t, name, adminPath(torn)+"/partitioned-stats"+slimQuery+"&perPartition=true")
		}
	}
}

// listings of a namespace.
func (r recorder) listings(t *testing.T) {
	g := r.ground
	g.demand(t, http.MethodPut, "/admin/v2/namespaces/public/listed", "")
	const prefix = "persistent://public/listed/"
	g.filled(t, prefix+"plain", 0, 3)
	g.filled(t, prefix+"parts", 2, 3)
	require.NoError(t, g.CreateTopic(t.Context(), prefix+"never-loaded", 2))
	g.policy(t, prefix+"plain", "maxUnackedMessagesOnSubscription", "500") // creates __change_events
	r.take(t, "topics-listed", "/admin/v2/persistent/public/listed?includeSystemTopic=false")
	r.take(t, "topics-listed-with-system", "/admin/v2/persistent/public/listed?includeSystemTopic=true")
	r.take(t, "topics-listed-partitioned", "/admin/v2/persistent/public/listed/partitioned?includeSystemTopic=false")
}

// components of the worker.
func (r recorder) components(t *testing.T) {
	for _, topic := range []string{"fn-in", "sink-in"} {
		require.NoError(t, r.CreateTopic(t.Context(), topic, 0))
	}
	r.create(t, function.KindFunction, r.function("paced", "fn-in"))
	r.consumed(t, broker.TopicName("fn-in"), "public/default/paced", 2)
	r.create(t, function.KindSink, map[string]any{
		"tenant": "public", "namespace": "default", "name": "drain", "className": replica.SinkClass,
		"inputs": []string{"sink-in"}, "parallelism": 1,
	})
	r.consumed(t, broker.TopicName("sink-in"), "public/default/drain", 1)
	for topic, component := range map[string]struct {
		kind function.Kind
		name string
	}{"fn-in": {function.KindFunction, "paced"}, "sink-in": {function.KindSink, "drain"}} {
		r.publish(t, topic, 20)
		r.instances(t, component.kind, component.name, func(s backlog.InstancesSample) bool {
			var done int64
			for _, i := range s.Instances {
				done += i.Processed
			}
			return done >= 20 // what Pulsar delivers again counts again
		})
		path := fmt.Sprintf("/admin/v3/%ss/public/default/%s", component.kind, component.name)
		r.take(t, fmt.Sprintf("%s-config-%s", component.kind, component.name), path)
		r.take(t, fmt.Sprintf("%s-status-%s", component.kind, component.name), path+"/status")
		if component.kind == function.KindFunction {
			r.take(t, "function-stats-paced", path+"/stats")
			r.take(t, "topic-stats-paced", adminPath(broker.TopicName(topic))+"/stats"+fullQuery)
		}
	}
}

// take requests a path and writes the response as <version>-<name>.json, or compares its fields with the file.
func (r recorder) take(t *testing.T, name, path string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(r.demand(t, http.MethodGet, path)))
	decoder.UseNumber() // whole numbers stay whole
	var answer any
	require.NoError(t, decoder.Decode(&answer))
	file := filepath.Join(fixtures, r.Version()+"-"+name+".json")
	if *record {
		text, err := json.MarshalIndent(scrub(t, answer), "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
		return
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err, "record it with make fixtures PULSAR=%s", r.Version())
	var recorded any
	require.NoError(t, json.Unmarshal(text, &recorded))
	require.Equal(t, fieldsOf(recorded), fieldsOf(answer), "%s: record it again with make fixtures PULSAR=%s", name,
		r.Version())
}

// local is what differs between machines and runs: ports of this host.
var local = regexp.MustCompile(`127\.0\.0\.1([:-])\d{4,5}`)

// scrub removes the machine's name and ports.
func scrub(t *testing.T, value any) any {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	var walk func(value any) any
	walk = func(value any) any {
		switch value := value.(type) {
		case string:
			return local.ReplaceAllString(strings.ReplaceAll(value, host, "host"), "127.0.0.1${1}8080")
		case []any:
			for i := range value {
				value[i] = walk(value[i])
			}
		case map[string]any:
			for key := range value {
				value[key] = walk(value[key])
			}
		}
		return value
	}
	return walk(value)
}

// fieldsOf lists all paths of keys, sorted and unique. Elements of a list share a path, and generated keys share one
// name.
func fieldsOf(value any) []string {
	var paths []string
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case []any:
			for _, element := range value {
				walk(path+"[]", element)
			}
		case map[string]any:
			for key, inner := range value {
				if madeUp.MatchString(key) {
					key = "*"
				}
				paths = append(paths, path+"."+key)
				if key == "publishers" {
					continue // they come and go, and are not read
				}
				walk(path+"."+key, inner)
			}
		}
	}
	walk("", value)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// madeUp are the generated names of bundles and of Pulsar's own cursors.
var madeUp = regexp.MustCompile(`^0x[0-9a-f]{8}_0x[0-9a-f]{8}$|reader-[0-9a-f]+$`)

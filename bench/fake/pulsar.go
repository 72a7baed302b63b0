// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// Counts are a broker's counts for one Function's topic.
type Counts struct {
	Published, Done int64
	// Unacked of those done are not acknowledged yet.
	Unacked int64
	// Replicas are the consumers.
	Replicas int
}

// Backlog is what is published and not acknowledged.
func (c Counts) Backlog() int64 { return c.Published - c.Done + c.Unacked }

// Pulsar serves the topic of each Function like the admin service of Pulsar 4.0, for the requests of the adapter, the
// scaler and KEDA's pulsar scaler. It returns the counts of a Function now, or false for one that does not exist.
type Pulsar func(function string) (Counts, bool)

const topicsPath = "/admin/v2/persistent/public/default/"

// TopicOf is the complete name of a Function's input topic.
func TopicOf(function string) string { return "persistent://public/default/" + function + "-in" }

// ServeHTTP implements http.Handler.
func (p Pulsar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	rest, found := strings.CutPrefix(r.URL.Path, topicsPath)
	topic, call, _ := strings.Cut(rest, "/")
	function := strings.TrimSuffix(topic, "-in")
	now, known := p(function)
	if !found || !known {
		refuse(w, "Topic not found")
		return
	}
	switch call { // the client may be gone
	case "partitions":
		_, _ = io.WriteString(w, `{"partitions":0,"deleted":false}`)
	case "stats":
		_, _ = w.Write(stats(function, now, r.URL.Query().Get("excludeConsumers") != "true"))
	case "internalStats":
		_, _ = fmt.Fprintf(w, `{"entriesAddedCounter":%d,"state":"LedgerOpened","ledgers":[],"cursors":{}}`, now.Published)
	default:
		refuse(w, "not a call of this benchmark")
	}
}

func refuse(w http.ResponseWriter, reason string) {
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(map[string]string{"reason": reason}) // as above
}

// recordedStats is what Pulsar 4.0.8 answered about the topic of a Function, with places for the counts, and
// recordedConsumer one of its consumers.
var (
	//go:embed testdata/stats.json
	recordedStats string
	//go:embed testdata/consumer.json
	recordedConsumer string
)

// messageBytes is the size of the recorded messages.
const messageBytes = 50

func stats(function string, c Counts, full bool) []byte {
	var consumers []byte
	for i := range c.Replicas {
		if !full {
			break
		}
		if i > 0 {
			consumers = append(consumers, ',')
		}
		consumers = fmt.Appendf(consumers, recordedConsumer, function, i)
	}
	return fmt.Appendf(nil, recordedStats, function, c.Published, c.Done, c.Backlog(), c.Unacked,
		messageBytes*c.Published, consumers)
}

// Serve serves on a free port until ctx ends, and returns the URL. It compresses all responses, as Pulsar does.
func (p Pulsar) Serve(ctx context.Context) (url string) {
	compressed, _ := gzhttp.NewWrapper(gzhttp.MinSize(0), gzhttp.CompressionLevel(gzip.BestSpeed)) // both are valid
	return Serve(ctx, compressed(p))
}

// Serve serves a handler on a free port until ctx ends, and returns the URL.
func Serve(ctx context.Context, handler http.Handler) (url string) {
	server := httptest.NewServer(handler)
	context.AfterFunc(ctx, server.Close)
	return server.URL
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// fakeBroker answers by the last parts of the path, such as "orders/stats". Each path has answers in order; the last
// one is repeated.
type fakeBroker struct {
	*httptest.Server

	mu sync.Mutex
	// answers and requests are guarded by mu.
	answers  map[string][]http.HandlerFunc
	requests []*http.Request
}

func newFakeBroker(t testing.TB) *fakeBroker {
	t.Helper()
	b := &fakeBroker{answers: map[string][]http.HandlerFunc{}}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *fakeBroker) on(path string, answers ...http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[path] = answers
}

func (b *fakeBroker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	path := strings.TrimPrefix(r.URL.Path, "/admin/v2/persistent/public/default/")
	queue := b.answers[path]
	b.requests = append(b.requests, r)
	if len(queue) > 1 {
		b.answers[path] = queue[1:]
	}
	b.mu.Unlock()
	if len(queue) == 0 {
		says(http.StatusNotFound, "Topic persistent://public/default/"+strings.SplitN(path, "/", 2)[0]+" not found")(w, r)
		return
	}
	queue[0](w, r)
}

// requested returns the paths and queries of the requests so far, without the namespace.
func (b *fakeBroker) requested() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	requested := make([]string, 0, len(b.requests))
	for _, r := range b.requests {
		requested = append(requested, strings.TrimPrefix(r.URL.Path, "/admin/v2/persistent/public/default/"))
	}
	return requested
}

func (b *fakeBroker) request(i int) *http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests[i]
}

func (b *fakeBroker) host() string { return strings.TrimPrefix(b.URL, "http://") }

func (b *fakeBroker) topic(name string) backlog.Topic {
	return backlog.Topic{Cluster: backlog.Cluster{AdminURL: b.URL}, Name: "persistent://public/default/" + name}
}

func sends(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// answers sends JSON, as a broker does on success.
func answers(body string) http.HandlerFunc { return sends(http.StatusOK, "application/json", body) }

// says answers with Pulsar's ErrorData.
func says(status int, reason string) http.HandlerFunc {
	return sends(status, "application/json", `{"reason":"`+reason+`"}`)
}

func redirectsTo(base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", base+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// replays sends a recorded answer with its status and headers.
func replays(t testing.TB, file string) http.HandlerFunc {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(fixture(t, file))), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return sends(resp.StatusCode, resp.Header.Get("Content-Type"), string(body))
}

func fixture(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	return content
}

// newSource returns a Source that may call the given servers.
func newSource(t testing.TB, config Config, servers ...*fakeBroker) *Source {
	t.Helper()
	if config.Registerer == nil {
		config.Registerer = prometheus.NewRegistry()
	}
	for _, server := range servers {
		config.AllowedHosts = append(config.AllowedHosts, server.URL)
	}
	source, err := New(config)
	require.NoError(t, err)
	t.Cleanup(source.Close)
	return source
}

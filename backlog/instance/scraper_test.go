// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func workload() backlog.Object {
	return backlog.Object{Kind: "Function", Namespace: "media", Name: "w"}
}

// book has the addresses of workloads.
type book struct {
	addresses []backlog.InstanceAddress
	err       error
}

func (b book) Addresses(asked backlog.Object) ([]backlog.InstanceAddress, error) {
	if asked != workload() {
		return nil, errors.New("a request for another workload: " + asked.String())
	}
	return b.addresses, b.err
}

// serve starts an instance that answers with the handler.
func serve(t *testing.T, id string, handler http.HandlerFunc) backlog.InstanceAddress {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return backlog.InstanceAddress{ID: id, Address: netip.MustParseAddrPort(server.Listener.Addr().String())}
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// refused is a port of 127.0.0.1 that refuses connections.
func refused(t *testing.T, id string) backlog.InstanceAddress {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return backlog.InstanceAddress{ID: id, Address: netip.MustParseAddrPort(listener.Addr().String())}
}

func scraper(addresses ...backlog.InstanceAddress) *Scraper {
	return New(prometheus.NewPedanticRegistry(), book{addresses: addresses})
}

func TestFetchScrapesEveryInstance(t *testing.T) {
	var requested atomic.Pointer[http.Request]
	first := serve(t, "pod-0", func(w http.ResponseWriter, r *http.Request) {
		requested.Store(r)
		says(functionText())(w, r)
	})
	answered := make(chan time.Time, 1)
	s := scraper(first, serve(t, "pod-1", func(w http.ResponseWriter, r *http.Request) {
		answered <- time.Now()
		says(functionText())(w, r)
	}))
	before := time.Now()
	got, err := s.FetchInstances(t.Context(), workload())
	require.NoError(t, err)
	require.False(t, got.At.Before(before) || got.At.After(time.Now()))
	require.Zero(t, got.Silent)
	require.Len(t, got.Instances, 2)
	require.Equal(t, "pod-0", got.Instances[0].ID)
	require.Equal(t, "pod-1", got.Instances[1].ID)
	require.Equal(t, int64(5), got.Instances[1].Received)
	require.False(t, got.Instances[1].At.Before(<-answered), "rates are measured between the answers of one instance")

	r := requested.Load()
	require.Equal(t, http.MethodGet, r.Method)
	require.Equal(t, "/metrics", r.URL.Path)
	require.Len(t, r.URL.Query()["name[]"], 6+4+4+1+1)
	require.Contains(t, r.URL.Query()["name[]"], "process_start_time_seconds")
	require.Contains(t, r.URL.Query()["name[]"], "pulsar_function_process_latency_ms", "its quantiles identify Java")
	require.Equal(t, "text/plain;version=0.0.4", r.Header.Get("Accept"))
	require.True(t, r.Close, "a connection to every pod would be kept open")
	for _, header := range []string{"Authorization", "Cookie", "X-Pulsar-Auth-Method-Name", "Accept-Encoding"} {
		require.Empty(t, r.Header.Get(header), header)
	}
	require.InDelta(t, 2, testutil.ToFloat64(s.scrapes.WithLabelValues("ok")), 0)
}

// counts is a function with these counters.
func counts(received, processed int) string {
	return functionText(fmt.Sprintf(`pulsar_function_received_total{fqfn="t/n/f",instance_id="0"} %d`, received),
		fmt.Sprintf(`pulsar_function_processed_successfully_total{fqfn="t/n/f",instance_id="0"} %d`, processed))
}

func TestFetchScrapesTwiceIfMessagesSeemInFlight(t *testing.T) {
	for name, test := range map[string]struct {
		answers             []string
		received, processed int64
	}{
		"one message in the call":                {[]string{counts(11, 10)}, 11, 10},
		"Python with its read-ahead":             {[]string{counts(13, 10)}, 13, 10},
		"processed first":                        {[]string{counts(10, 90)}, 10, 90},
		"a fast function, received last":         {[]string{counts(110, 10), counts(205, 115)}, 115, 115},
		"futures":                                {[]string{counts(110, 10), counts(112, 13)}, 110, 13},
		"a function that was restarted between":  {[]string{counts(110, 10), counts(5, 4)}, 5, 4},
		"a fast function that fell idle between": {[]string{counts(110, 10), counts(110, 110)}, 110, 110},
	} {
		t.Run(name, func(t *testing.T) {
			left := test.answers
			s := scraper(serve(t, "pod-0", func(w http.ResponseWriter, r *http.Request) {
				says(left[0])(w, r)
				left = left[1:]
			}))
			got, err := s.FetchInstances(t.Context(), workload())
			require.NoError(t, err)
			require.Empty(t, left)
			require.Equal(t, test.received, got.Instances[0].Received)
			require.Equal(t, test.processed, got.Instances[0].Processed)
			require.InDelta(t, len(test.answers), testutil.ToFloat64(s.scrapes.WithLabelValues("ok")), 0)
		})
	}
}

func TestFetchCountsAnInstanceAsSilentAfterItsSecondScrape(t *testing.T) {
	var requested atomic.Int64
	s := scraper(serve(t, "pod-0", func(w http.ResponseWriter, r *http.Request) {
		if requested.Add(1) > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		says(counts(110, 10))(w, r)
	}))
	_, err := s.FetchInstances(t.Context(), workload())
	require.ErrorIs(t, err, backlog.ErrUnavailable)
}

func TestFetchCountsSilentInstances(t *testing.T) {
	s := scraper(refused(t, "dead"), serve(t, "alive", says(functionText())),
		serve(t, "wrong", says("up 1\n")))
	got, err := s.FetchInstances(t.Context(), workload())
	require.NoError(t, err)
	require.Equal(t, 2, got.Silent)
	require.Len(t, got.Instances, 1)
	require.Equal(t, "alive", got.Instances[0].ID)
	for _, result := range []string{"ok", "unreachable", "protocol"} {
		require.InDelta(t, 1, testutil.ToFloat64(s.scrapes.WithLabelValues(result)), 0, result)
	}
}

func TestFetchOfAWorkloadWithoutInstancesIsNoError(t *testing.T) {
	got, err := scraper().FetchInstances(t.Context(), workload())
	require.NoError(t, err)
	require.Empty(t, got.Instances)
	require.Zero(t, got.Silent)
	require.False(t, got.At.IsZero())
}

func TestFetchReportsUnknownAddresses(t *testing.T) {
	s := scraper()
	s.addresses = book{err: fmt.Errorf("%w: pods are not listed yet", backlog.ErrNoData)}
	_, err := s.FetchInstances(t.Context(), workload())
	require.ErrorIs(t, err, backlog.ErrNoData)
	require.ErrorContains(t, err, "finding the instances of Function/media/w: no data yet: pods are not listed yet")
}

func TestFetchWithoutAnyAnswerReturnsTheReason(t *testing.T) {
	cutOff := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "pulsar_function_received_total 1")
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		reason  error
		want    string
	}{
		"a broken connection": {cutOff, backlog.ErrUnreachable, "the connection was closed before the answer was complete"},
		"another program":     {says("up 1\n"), backlog.ErrProtocol, "is that the metrics port of an instance?"},
		"another path":        {status(http.StatusNotFound), backlog.ErrProtocol, "it answered 404"},
		"a service mesh": {
			status(http.StatusForbidden), backlog.ErrForbidden,
			"does a service mesh in between refuse it?",
		},
		"an overloaded one": {
			status(http.StatusServiceUnavailable), backlog.ErrUnavailable,
			"it answered 503: retried soon",
		},
		"more than the limit": {
			says(functionText() + strings.Repeat("x 1\n", 1000)), backlog.ErrProtocol,
			"its metrics have more than 1024 bytes",
		},
		"an endless line": {
			says("# " + strings.Repeat("x", 4*maxLineBytes)), backlog.ErrProtocol,
			"its metrics have more than 1024 bytes",
		},
		"no end of the number": {
			says(strings.TrimSuffix(functionText(), "00\n")), backlog.ErrProtocol,
			"its metrics are cut off",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scraper(serve(t, "pod-0", test.handler))
			s.maxBytes = 1 << 10
			got, err := s.FetchInstances(t.Context(), workload())
			require.ErrorIs(t, err, test.reason)
			require.ErrorContains(t, err, "the only instance of Function/media/w: ")
			require.ErrorContains(t, err, "pod-0 at 127.0.0.1:")
			require.ErrorContains(t, err, test.want)
			require.Zero(t, got, "a sample without an instance would look idle")
		})
	}

	_, err := scraper(refused(t, "a"), refused(t, "b")).FetchInstances(t.Context(), workload())
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	require.ErrorContains(t, err,
		"none of the 2 instances of Function/media/w answers; the first: unreachable: a at 127.0.0.1:")
	require.ErrorContains(t, err, "connection refused: is it still starting?")
}

func TestFetchFollowsNoRedirect(t *testing.T) {
	var called atomic.Bool
	other := serve(t, "other", func(http.ResponseWriter, *http.Request) { called.Store(true) })
	s := scraper(serve(t, "pod-0", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+other.Address.String()+"/metrics", http.StatusFound)
	}))
	_, err := s.FetchInstances(t.Context(), workload())
	require.ErrorIs(t, err, backlog.ErrProtocol)
	require.ErrorContains(t, err, "it answered 302")
	require.False(t, called.Load())
}

func TestFetchUsesNoProxy(t *testing.T) {
	var called atomic.Bool
	proxy := serve(t, "proxy", func(http.ResponseWriter, *http.Request) { called.Store(true) })
	t.Setenv("HTTP_PROXY", "http://"+proxy.Address.String())
	// Go never uses a proxy for a loopback address, so the test needs an address that leads nowhere.
	s := scraper(backlog.InstanceAddress{ID: "pod-0", Address: netip.MustParseAddrPort("192.0.2.1:9094")})
	s.timeout = 50 * time.Millisecond
	_, err := s.FetchInstances(t.Context(), workload())
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	require.False(t, called.Load())
}

func TestFetchTimesOutOnSlowInstances(t *testing.T) {
	release := make(chan struct{})
	drip := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "# slow loris\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
	s := scraper(serve(t, "drips", drip), serve(t, "alive", says(functionText())))
	s.timeout = 50 * time.Millisecond
	t.Cleanup(func() { close(release) })
	got, err := s.FetchInstances(t.Context(), workload())
	require.NoError(t, err)
	require.Equal(t, 1, got.Silent)
	require.Len(t, got.Instances, 1)

	s.addresses = book{addresses: s.addresses.(book).addresses[:1]}
	_, err = s.FetchInstances(t.Context(), workload())
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	require.ErrorContains(t, err, "no answer within 50ms: does a network policy close its metrics port?")
}

func TestFetchEndsWithItsContext(t *testing.T) {
	requested := make(chan struct{}, 1)
	hang := serve(t, "hangs", func(_ http.ResponseWriter, r *http.Request) {
		requested <- struct{}{}
		<-r.Context().Done()
	})
	s := scraper(hang)
	s.timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-requested; cancel() }()
	_, err := s.FetchInstances(ctx, workload())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, backlog.ErrUnreachable)
	require.InDelta(t, 1, testutil.ToFloat64(s.scrapes.WithLabelValues("canceled")), 0)
}

func TestFetchBoundsConcurrentRequests(t *testing.T) {
	var now, most atomic.Int64
	count := func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		says(functionText())(w, r)
		now.Add(-1)
	}
	addresses := make([]backlog.InstanceAddress, 40)
	for i := range addresses {
		addresses[i] = serve(t, fmt.Sprint("pod-", i), count)
	}
	s := scraper(addresses...)
	got, err := s.FetchInstances(t.Context(), workload())
	require.NoError(t, err)
	require.Len(t, got.Instances, len(addresses))
	require.LessOrEqual(t, most.Load(), int64(atOnce))
}

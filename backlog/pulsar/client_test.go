// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

func writeFile(t testing.TB, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func ownToken(t testing.TB, token string) auth.Own {
	t.Helper()
	return auth.Own{TokenFile: writeFile(t, "token", token)}
}

func TestRedirectsElsewhereAreNotFollowed(t *testing.T) {
	front, elsewhere := newFakeBroker(t), newFakeBroker(t)
	elsewhere.on("orders/stats", answers(`{"msgInCounter":5,"subscriptions":{}}`))
	secure := httptest.NewTLSServer(front)
	t.Cleanup(secure.Close)
	secureHost := secure.Listener.Addr().String()
	authority := writeFile(t, "ca.pem", string(pemOf(secure.Certificate())))
	tests := map[string]struct {
		location string
		overTLS  bool
		reason   error
		text     string
	}{
		"a host that is not allowed": {
			location: elsewhere.URL, reason: backlog.ErrHostNotAllowed,
			text: "host not allowed: " + front.host() + " redirects persistent://public/default/orders to " +
				elsewhere.host() +
				", which is not an allowed Pulsar host: add it to " + allowedHostsFix,
		},
		"the allowed host by another name": {
			location: strings.Replace(front.URL, "127.0.0.1", "localhost", 1), reason: backlog.ErrHostNotAllowed,
			text: "host not allowed: " + front.host() + " redirects persistent://public/default/orders to " +
				strings.Replace(front.host(), "127.0.0.1", "localhost", 1) +
				", which is not an allowed Pulsar host: add it to " + allowedHostsFix,
		},
		"a URL with credentials that looks like the allowed host": {
			location: "http://" + front.host() + "@" + elsewhere.host(), reason: backlog.ErrProtocol,
			text: "unexpected answer: " + front.host() +
				" redirects persistent://public/default/orders to no HTTP URL: is it a Pulsar admin service?",
		},
		"a host without an end": {
			location: "http://" + strings.Repeat("x", 5000), reason: backlog.ErrHostNotAllowed,
			text: "host not allowed: " + front.host() + " redirects persistent://public/default/orders to " +
				strings.Repeat("x", backlog.MostQuoted) +
				"..., which is not an allowed Pulsar host: add it to " + allowedHostsFix,
		},
		"an invalid location": {
			location: "http://[::1%.pulsar]:8080", reason: backlog.ErrProtocol,
			text: "unexpected answer: " + front.host() +
				" redirects persistent://public/default/orders to no HTTP URL: is it a Pulsar admin service?",
		},
		"a file": {
			location: "file://" + front.host(), reason: backlog.ErrProtocol,
			text: "unexpected answer: " + front.host() +
				" redirects persistent://public/default/orders to no HTTP URL: is it a Pulsar admin service?",
		},
		"an allowed host in clear text after TLS": {
			location: front.URL, overTLS: true, reason: backlog.ErrForbidden,
			text: "permission missing: " + secureHost + " redirects persistent://public/default/orders from https to http://" +
				front.host() +
				": set webServicePortTls on the brokers",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			front.on("orders/partitions", answers(notPartitioned))
			front.on("orders/stats", redirectsTo(tt.location))
			source := newSource(t, Config{
				Own: auth.Own{TokenFile: writeFile(t, "token", "secret"), CAFile: authority}, AllowedHosts: []string{secureHost},
			}, front)
			topic := front.topic("orders")
			if tt.overTLS {
				topic.Cluster = backlog.Cluster{AdminURL: secure.URL}
			}
			_, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, tt.reason)
			require.Equal(t, tt.text, err.Error())
			require.Empty(t, elsewhere.requested(), "no request may leave, with or without the token")
		})
	}
}

func TestNothingIsSentToAClusterThatIsNotAllowed(t *testing.T) {
	elsewhere := newFakeBroker(t)
	for name, allowed := range map[string][]string{"nothing is allowed": nil, "another port is allowed": {"127.0.0.1:1"}} {
		t.Run(name, func(t *testing.T) {
			source := newSource(t, Config{Own: ownToken(t, "secret"), AllowedHosts: allowed})
			_, err := source.Fetch(t.Context(), elsewhere.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, backlog.ErrHostNotAllowed)
			require.EqualError(t, err,
				"host not allowed: "+elsewhere.host()+" is not an allowed Pulsar host: add it to "+allowedHostsFix)
			require.Empty(t, elsewhere.requested())
		})
	}
}

// The author of a policy chooses the scheme of its adminURL.
func TestOwnCredentialsGoInClearTextOnlyIfAllowed(t *testing.T) {
	named := &fakeCredentials{named: map[string]backlog.Credentials{"ns/secret": {Plugin: "token", Params: "s3cret"}}}
	tests := map[string]struct {
		config  Config
		scheme  string
		access  string
		refused bool
	}{
		"an entry without a scheme": {config: Config{Own: ownToken(t, "secret")}, refused: true},
		"an entry with http":        {config: Config{Own: ownToken(t, "secret")}, scheme: "http://"},
		"credentials that the policy names": {
			config: Config{Own: ownToken(t, "secret"), Credentials: named}, access: "ns/secret",
		},
		"a program without credentials": {},
		"a plugin instead of a token": {
			config: Config{Own: auth.Own{Plugin: "basic", ParamsFile: writeFile(t, "params", "a:b")}}, refused: true,
		},
		"a token in a file, before the file is opened": {config: Config{Own: auth.Own{TokenFile: "absent"}}, refused: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker, front := newOrders(t), newFakeBroker(t)
			front.on("orders/partitions", answers(notPartitioned))
			front.on("orders/stats", redirectsTo(broker.URL))
			tt.config.AllowedHosts = []string{tt.scheme + broker.host()}
			fetch := func(from *fakeBroker, config Config) error {
				topic := from.topic("orders")
				topic.Cluster.Access = tt.access
				_, err := newSource(t, config).Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
				return err
			}
			direct := fetch(broker, tt.config)
			tt.config.AllowedHosts = append(tt.config.AllowedHosts, front.URL)
			if !tt.refused {
				require.NoError(t, direct)
				require.NoError(t, fetch(front, tt.config), "a redirect")
				return
			}
			want := broker.host() + " gets the autoscaler's own credentials over https only: use its https URL, or add http://" +
				broker.host() + " to " + allowedHostsFix + ", which sends them in clear text"
			require.ErrorIs(t, direct, backlog.ErrHostNotAllowed)
			require.EqualError(t, direct, "host not allowed: "+want)
			require.Empty(t, broker.requested())
			if tt.config.Own.TokenFile == "" {
				require.EqualError(t, fetch(front, tt.config), "host not allowed: "+front.host()+
					" redirects persistent://public/default/orders to "+strings.Replace(want, " gets", ", which gets", 1))
				require.Empty(t, broker.requested())
			}
		})
	}
}

// An IPv6 zone may be any text, such as the end of an allowed name, and net/http calls the address before it.
func TestAnAddressThatLooksLikeAnAllowedNameIsSentNothing(t *testing.T) {
	elsewhere := newFakeBroker(t)
	conns := atomic.Int64{}
	elsewhere.Config.ConnState = func(net.Conn, http.ConnState) { conns.Add(1) }
	_, port, err := net.SplitHostPort(elsewhere.host())
	require.NoError(t, err)
	front := newFakeBroker(t)
	// Each decoding removes one layer.
	for layer, percent := 0, "%25"; layer < 6; layer, percent = layer+1, percent+"25" {
		t.Run(percent, func(t *testing.T) {
			source := newSource(t, Config{
				Own: ownToken(t, "secret"), AllowedHosts: []string{"*.pulsar.svc"},
			}, front)
			disguised := "http://[::ffff:127.0.0.1" + percent + ".pulsar.svc]:" + port
			_, err := source.Fetch(t.Context(), backlog.Topic{
				Cluster: backlog.Cluster{AdminURL: disguised}, Name: "persistent://public/default/orders",
			}, backlog.Request{Detail: backlog.Slim})

			require.ErrorIs(t, err, backlog.ErrProtocol)
			front.on("orders/partitions", answers(notPartitioned))
			front.on("orders/stats", redirectsTo(disguised))
			_, err = source.Fetch(t.Context(), front.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, backlog.ErrHostNotAllowed)
			require.Zero(t, conns.Load(), "no connection may be made")
		})
	}
}

func TestRedirectsEnd(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", redirectsTo(broker.URL))
	_, err := newSource(t, Config{}, broker).Fetch(t.Context(), broker.topic("orders"),
		backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrUnavailable)
	require.Len(t, broker.requested(), 4, "the request and three redirects")
}

// breaks sends the start of an answer and closes the connection.
func breaks(t *testing.T) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
		_ = buffer.Flush()
		_ = conn.Close()
	}
}

func TestRetriesOnceAndOnlyWhereItHelps(t *testing.T) {
	good := answers(`{"msgInCounter":5,"subscriptions":{}}`)
	tests := map[string]struct {
		answers []http.HandlerFunc
		reason  error
		calls   int
	}{
		"after a 503":                   {[]http.HandlerFunc{says(503, "starting"), good}, nil, 2},
		"after a 502":                   {[]http.HandlerFunc{sends(502, "text/html", ""), good}, nil, 2},
		"after a kept connection broke": {[]http.HandlerFunc{breaks(t), good}, nil, 2},
		"not after a second 503": {
			[]http.HandlerFunc{says(503, "starting"), says(503, "starting"), good},
			backlog.ErrUnavailable, 2,
		},
		"not after a fresh connection": {[]http.HandlerFunc{breaks(t), breaks(t), good}, backlog.ErrUnreachable, 2},
		"not after a 500": {
			[]http.HandlerFunc{sends(500, "text/plain", ""), good},
			backlog.ErrUnavailable,
			1,
		},
		"not after a 429": {
			[]http.HandlerFunc{sends(429, "text/html", ""), good},
			backlog.ErrUnavailable,
			1,
		},
		"not after a page that is not JSON": {[]http.HandlerFunc{sends(200, "text/html", ""), good}, backlog.ErrProtocol, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(notPartitioned))
			broker.on("orders/stats", tt.answers...)
			_, err := newSource(t, Config{}, broker).Fetch(t.Context(), broker.topic("orders"),
				backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, tt.reason)
			require.Len(t, broker.requested()[1:], tt.calls)
		})
	}
}

func TestAnswersAreBounded(t *testing.T) {
	const limit = 1 << 10
	pad := func(total int) string {
		body := `{"msgInCounter":5,"subscriptions":{}}`
		return body[:1] + strings.Repeat(" ", total-len(body)) + body[1:]
	}
	zipped := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				http.Error(w, "gzip was not requested", http.StatusNotAcceptable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			_, _ = io.WriteString(zip, body)
			_ = zip.Close()
		}
	}
	tests := map[string]struct {
		answer http.HandlerFunc
		good   bool
	}{
		"as long as the limit":                      {answers(pad(limit)), true},
		"one byte longer":                           {answers(pad(limit + 1)), false},
		"much longer, and small while compressed":   {zipped(pad(100 * limit)), false},
		"compressed and within the limit":           {zipped(pad(limit)), true},
		"valid JSON and then blanks over the limit": {answers(pad(100) + strings.Repeat(" ", limit)), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(notPartitioned))
			broker.on("orders/stats", tt.answer)
			source := newSource(t, Config{}, broker)
			source.client.maxAnswerBytes = limit
			_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
			if tt.good {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, backlog.ErrProtocol)
			require.EqualError(t, err, "unexpected answer: "+broker.host()+
				" sent more than 1024 bytes for persistent://public/default/orders: remove unused subscriptions")
		})
	}
}

// hangs sends nothing until the client has disconnected.
func hangs(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestFetchTimesOutOnABrokerThatHangs(t *testing.T) {
	broker := newFakeBroker(t)
	tests := map[string]struct {
		answer http.HandlerFunc
	}{
		"before the first byte":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"in the middle of a body": {hangs},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker.on("orders/partitions", tt.answer)
			source := newSource(t, Config{RequestTimeout: 20 * time.Millisecond}, broker)
			_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, backlog.ErrUnreachable)
			require.EqualError(t, err,
				"unreachable: "+broker.host()+" for persistent://public/default/orders: no answer within 20ms")
		})
	}
}

func TestTheCallersDeadlineIsNotOurTimeout(t *testing.T) {
	tests := map[string]struct {
		end    func(context.Context) (context.Context, context.CancelFunc)
		text   string
		result string
	}{
		"the caller's deadline": {
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 20*time.Millisecond)
			},
			text: "no answer in time", result: "partitions unreachable",
		},
		"the caller gives up": {
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx, cancel
			},
			text: "canceled", result: "partitions canceled",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := newNetwork(t)
				broker := way.broker("broker:8080")
				broker.on("orders/partitions", hangs)
				registry := prometheus.NewRegistry()
				source := way.source(Config{Registerer: registry})
				ctx, cancel := tt.end(t.Context())
				defer cancel()
				_, err := source.Fetch(ctx, broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
				require.ErrorIs(t, err, backlog.ErrUnreachable)
				require.ErrorIs(t, err, ctx.Err())
				require.EqualError(t, err, "unreachable: "+broker.host()+" for persistent://public/default/orders: "+tt.text)
				require.Equal(t, map[string]float64{tt.result: 1}, counted(t, registry))
			})
		})
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", answers(`{"msgInCounter":5,"subscriptions":{}}`), says(500, "no"), redirectsTo(broker.URL),
		answers(`{"msgInCounter":5,"subscriptions":{}}`))
	source := newSource(t, Config{}, broker)
	for range 4 {
		_, _ = source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
	}
	require.Equal(t, broker.request(0).RemoteAddr, broker.request(5).RemoteAddr)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// fakeCredentials is an auth.Source that tests change.
type fakeCredentials struct {
	mu sync.Mutex
	// named, invalidated and fresh are guarded by mu.
	named       map[string]backlog.Credentials
	invalidated []string
	// fresh replaces invalidated credentials.
	fresh map[string]backlog.Credentials
}

func (f *fakeCredentials) Credentials(_ context.Context, access string) (backlog.Credentials, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.named[access]
	if !ok {
		return backlog.Credentials{}, errors.New("secret " + access + " does not exist: create it")
	}
	return found, nil
}

func (f *fakeCredentials) Invalidate(access string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.invalidated = append(f.invalidated, access)
	if fresh, ok := f.fresh[access]; ok {
		f.named[access] = fresh
	}
}

// named is a topic of the broker with named credentials.
func (b *fakeBroker) named(topic, access string) backlog.Topic {
	t := b.topic(topic)
	t.Cluster.Access = access
	return t
}

const emptyTopic = `{"msgInCounter":5,"subscriptions":{}}`

// newOrders is a broker with one topic.
func newOrders(t testing.TB) *fakeBroker {
	t.Helper()
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", answers(emptyTopic))
	return broker
}

// needs calls next if the request has the authorization, and otherwise refuses it as a broker does.
func needs(authorization string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != authorization {
			sends(http.StatusUnauthorized, "text/html;charset=iso-8859-1", "<html>Error 401 Authentication required</html>")(w,
				r)
			return
		}
		next(w, r)
	}
}

func TestEachClusterIsShownItsOwnCredentials(t *testing.T) {
	broker := newOrders(t)
	named := &fakeCredentials{named: map[string]backlog.Credentials{
		"a/token": {Plugin: "token", Params: "token:of-a"},
		"b/basic": {
			Plugin: "org.apache.pulsar.client.impl.auth.AuthenticationBasic",
			Params: `{"userId":"user","password":"pass"}`,
		},
		"c/none": {},
	}}
	source := newSource(t, Config{Own: ownToken(t, "own"), Credentials: named}, broker)
	tests := map[string]struct{ access, authorization, method string }{
		"the program's where none are named": {"", "Bearer own", "token"},
		"a token":                            {"a/token", "Bearer of-a", "token"},
		"a user and password":                {"b/basic", "Basic dXNlcjpwYXNz", "basic"},
		"none, and not the program's":        {"c/none", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := source.Fetch(t.Context(), broker.named("orders", tt.access), backlog.Request{Detail: backlog.Slim})
			require.NoError(t, err)
			last := broker.request(len(broker.requested()) - 1)
			require.Equal(t, tt.authorization, last.Header.Get("Authorization"))
			require.Equal(t, tt.method, last.Header.Get("X-Pulsar-Auth-Method-Name"))
		})
	}
}

func TestManyTokensShareTheConnectionsOfAHost(t *testing.T) {
	const credentials, topics, atOnce = 1100, 5, 16
	broker := newFakeBroker(t)
	var opened, open, most atomic.Int64
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		opened.Add(1)
		for now, before := open.Add(1), most.Load(); now > before && !most.CompareAndSwap(before, now); {
			before = most.Load()
		}
		return &closing{Conn: connection, closed: sync.OnceFunc(func() { open.Add(-1) })}, nil
	}
	named := map[string]backlog.Credentials{}
	for i := range credentials {
		named[fmt.Sprint("token-", i)] = backlog.Credentials{Plugin: "token", Params: fmt.Sprint("token:of-", i)}
	}
	for j := range topics {
		broker.on(fmt.Sprint("topic-", j, "/partitions"), answers(notPartitioned))
		broker.on(fmt.Sprint("topic-", j, "/stats"), answers(emptyTopic))
	}
	source := newSource(t, Config{
		Credentials: &fakeCredentials{named: named}, RequestTimeout: time.Minute, MaxRequestsPerSecondPerHost: 100_000,
		dial: dial,
	}, broker)
	for range 2 {
		var group errgroup.Group
		group.SetLimit(atOnce)
		for i := range credentials * topics {
			group.Go(func() error {
				topic := broker.named(fmt.Sprint("topic-", i%topics), fmt.Sprint("token-", i/topics))
				_, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
				return err
			})
		}
		require.NoError(t, group.Wait())
	}
	t.Logf("%d connections, at most %d at once", opened.Load(), most.Load())
	require.LessOrEqual(t, most.Load(), int64(2*atOnce))
	// net/http closes a connection after a request that took more than 50 ms to write: a busy machine opens more.
	require.Less(t, opened.Load(), int64(credentials/10))
}

// closing reports that a connection is closed.
type closing struct {
	net.Conn

	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

func TestInvalidNamedCredentialsSendNothing(t *testing.T) {
	tests := map[string]struct {
		credentials backlog.Credentials
		reason      error
		text        string
	}{
		"a token file": {
			backlog.Credentials{Plugin: "token", Params: "file:///etc/auth/token"},
			backlog.ErrUnsupported,
			"token names a file inside the function's pod, which the adapter cannot read: /etc/auth/token: " +
				"put its content into the Secret, or name a Secret for the adapter in the policy",
		},
		"a certificate file": {
			backlog.Credentials{Plugin: "tls", Params: "tlsCertFile:/etc/tls/tls.crt,tlsKeyFile:/etc/tls/tls.key"},
			backlog.ErrUnsupported,
			"tlsCertFile names a file inside the function's pod, which the adapter cannot read: /etc/tls/tls.crt: " +
				"put its content into the Secret, or name a Secret for the adapter in the policy",
		},
		"a key file of an issuer": {
			backlog.Credentials{
				Plugin: "oauth2",
				Params: `{"issuerUrl":"https://issuer","privateKey":"file:///etc/oauth2/key.json"}`,
			},
			backlog.ErrUnsupported,
			"privateKey names a file inside the function's pod, which the adapter cannot read: /etc/oauth2/key.json: " +
				"put its content into the Secret, or name a Secret for the adapter in the policy",
		},
		"an issuer that is not allowed": {
			backlog.Credentials{Plugin: "oauth2", Params: `{"issuerUrl":"https://Evil/x/","privateKey":"data:,{}"}`},
			backlog.ErrHostNotAllowed,
			"https://evil/x is not an allowed OAuth2 issuer: add it to --allowed-oauth2-issuers (value " +
				"pulsar.allowedOAuth2Issuers of the chart)",
		},
		"a plugin that is not known": {
			backlog.Credentials{Plugin: "org.apache.pulsar.client.impl.auth.AuthenticationAthenz", Params: "s3cret"},
			backlog.ErrUnsupported,
			`authentication plugin "org.apache.pulsar.client.impl.auth.AuthenticationAthenz": it must be one of token, tls, basic, oauth2 or ` +
				"org.apache.pulsar.client.impl.auth.Authentication{Token,Tls,Basic}, ...auth.oauth2.AuthenticationOAuth2",
		},
		"invalid certificates to trust": {
			backlog.Credentials{TrustCerts: "s3cret"},
			backlog.ErrUnauthenticated,
			"the certificates to trust have none: they must be PEM with at least one",
		},
		"a key that is none": {
			backlog.Credentials{Plugin: "tls", Params: "tlsCertFile:data:,s3cret,tlsKeyFile:data:,s3cret"},
			backlog.ErrUnauthenticated,
			"tlsCertFile and tlsKeyFile must be a certificate and its key in PEM",
		},
		"a key file of an issuer that is none": {
			backlog.Credentials{Plugin: "oauth2", Params: `{"issuerUrl":"https://issuer","privateKey":"data:,s3cret"}`},
			backlog.ErrUnauthenticated,
			"privateKey is no JSON object with texts",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newOrders(t)
			source := newSource(t, Config{AllowedIssuers: []string{"https://issuer/"}, Credentials: &fakeCredentials{
				named: map[string]backlog.Credentials{"ns/secret": tt.credentials},
			}}, broker)
			_, err := source.Fetch(t.Context(), broker.named("orders", "ns/secret"), backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, tt.reason)
			require.EqualError(t, err, tt.reason.Error()+": nothing was sent to "+broker.host()+": "+tt.text)
			require.Empty(t, broker.requested())
		})
	}
}

func TestUnknownNamesSendNothing(t *testing.T) {
	broker := newOrders(t)
	tests := map[string]struct {
		source auth.Source
		text   string
	}{
		"the source does not have the name": {&fakeCredentials{}, "secret ns/secret does not exist: create it"},
		"there is no source":                {nil, "it needs credentials of its own, which this program does not look up"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			source := newSource(t, Config{Own: ownToken(t, "own"), Credentials: tt.source}, broker)
			_, err := source.Fetch(t.Context(), broker.named("orders", "ns/secret"), backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, backlog.ErrUnauthenticated)
			require.EqualError(t, err, "credentials refused: nothing was sent to "+broker.host()+": "+tt.text)
			require.Empty(t, broker.requested(), "the program's own credentials must not stand in")
		})
	}
}

// unready is an auth.Source without an answer yet.
type unready struct {
	requested int
	err       error
}

func (u *unready) Credentials(context.Context, string) (backlog.Credentials, error) {
	u.requested++
	return backlog.Credentials{}, u.err
}

func (*unready) Invalidate(string) {}

func TestCredentialsThatAreNotReadYetAreNotRefused(t *testing.T) {
	tests := map[string]struct {
		err, reason error
		text        string
		result      string
	}{
		"too early": {
			fmt.Errorf("%w: the target has not been looked up yet",
				backlog.ErrNoData), backlog.ErrNoData, "the target has not been looked up yet",
			"stats-age no_data",
		},
		"not in time": {
			fmt.Errorf("reading Secret ns/secret: %w", context.DeadlineExceeded), backlog.ErrUnavailable,
			"reading Secret ns/secret: context deadline exceeded", "stats-age unavailable",
		},
		"never": {
			fmt.Errorf("%w: the plugin", backlog.ErrUnsupported), backlog.ErrUnsupported, "the plugin", "stats-age unsupported",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newOrders(t)
			known := &unready{err: tt.err}
			registry := prometheus.NewRegistry()
			source, topic := newSource(t, Config{Registerer: registry, Credentials: known}, broker), broker.named("orders",
				"ns/secret")
			source.counts.Put(topic, 0, source.now())
			_, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Age})
			require.EqualError(t, err, tt.reason.Error()+": nothing was sent to "+broker.host()+": "+tt.text)
			require.ErrorIs(t, err, tt.reason)
			require.NotErrorIs(t, err, backlog.ErrUnauthenticated)
			require.Equal(t, 1, known.requested, "the age has no part in it")
			require.Equal(t, map[string]float64{tt.result: 1}, counted(t, registry))
		})
	}
}

func TestRotatedCredentialsAreReadAgainAtOnce(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", needs("Bearer new", answers(notPartitioned)))
	broker.on("orders/stats", needs("Bearer new", answers(emptyTopic)))
	stale := backlog.Credentials{Plugin: "token", Params: "old"}
	known := &fakeCredentials{
		named: map[string]backlog.Credentials{"ns/secret": stale},
		fresh: map[string]backlog.Credentials{"ns/secret": {Plugin: "token", Params: "new"}},
	}
	source := newSource(t, Config{Credentials: known}, broker)
	_, err := source.Fetch(t.Context(), broker.named("orders", "ns/secret"), backlog.Request{Detail: backlog.Slim})
	require.NoError(t, err, "one fetch must do")
	require.Equal(t, []string{"ns/secret"}, known.invalidated)
	require.Equal(t, []string{"orders/partitions", "orders/partitions", "orders/stats"}, broker.requested())
}

func TestRefusedCredentialsThatAreStillTheSameAreShownOnce(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", needs("Bearer other", answers(notPartitioned)))
	known := &fakeCredentials{named: map[string]backlog.Credentials{"ns/secret": {Plugin: "token", Params: "wrong"}}}
	_, err := newSource(t, Config{Credentials: known}, broker).Fetch(t.Context(), broker.named("orders", "ns/secret"),
		backlog.Request{Detail: backlog.Slim})

	require.ErrorIs(t, err, backlog.ErrUnauthenticated)
	require.Equal(t, []string{"ns/secret"}, known.invalidated)
	require.Len(t, broker.requested(), 1)
}

func TestAChangeOfCertificatesClosesTheOldConnections(t *testing.T) {
	broker := newOrders(t)
	known := &fakeCredentials{named: map[string]backlog.Credentials{"ns/secret": {Plugin: "token", Params: "old"}}}
	source := newSource(t, Config{Registerer: prometheus.NewRegistry(), Credentials: known}, broker)
	fetch := func() string {
		_, err := source.Fetch(t.Context(), broker.named("orders", "ns/secret"), backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
		return broker.request(len(broker.requested()) - 1).RemoteAddr
	}
	first := fetch()
	require.Equal(t, first, fetch())
	change := func(to backlog.Credentials) {
		known.mu.Lock()
		defer known.mu.Unlock()
		known.named["ns/secret"] = to
	}
	change(backlog.Credentials{Plugin: "token", Params: "new"})
	require.Equal(t, first, fetch(), "a token is part of each request")
	require.Equal(t, "Bearer new", broker.request(len(broker.requested())-1).Header.Get("Authorization"))
	change(backlog.Credentials{Plugin: "token", Params: "new", SkipHostnameVerification: true})
	require.NotEqual(t, first, fetch(), "a connection must not outlive the certificates that it was made under")
}

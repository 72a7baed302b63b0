// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// fakeIssuer hands out token-1, token-2 and so on, each good for an hour of its clients' clocks.
type fakeIssuer struct {
	*httptest.Server

	mu sync.Mutex
	// forms, discovery and token are guarded by mu; the last two stand in for the good answers.
	forms            []url.Values
	discovery, token http.HandlerFunc
}

func newFakeIssuer(t testing.TB) *fakeIssuer {
	t.Helper()
	i := &fakeIssuer{}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func (i *fakeIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // an empty form fails the test
	i.mu.Lock()
	answer := i.discovery
	if r.URL.Path != "/realm/.well-known/openid-configuration" {
		i.forms = append(i.forms, r.PostForm)
		answer = i.token
	}
	count := len(i.forms)
	i.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == "/realm/.well-known/openid-configuration":
		answers(`{"token_endpoint":"`+i.URL+`/token"}`)(w, r)
	default:
		answers(fmt.Sprintf(`{"access_token":"token-%d","expires_in":3600,"token_type":"Bearer"}`, count))(w, r)
	}
}

func (i *fakeIssuer) asked() []url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.forms
}

func (i *fakeIssuer) on(discovery, token http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.discovery, i.token = discovery, token
}

// params are those of a client with the secret "s3cret".
func (i *fakeIssuer) params() string {
	return `{"issuerUrl":"` + i.URL +
		`/realm/","privateKey":"data:,{\"client_id\":\"me\",\"client_secret\":\"s3cret\"}","audience":"pulsar","scope":"a b"}`
}

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	// at is guarded by mu.
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (i *fakeIssuer) client(t testing.TB) (*issuerClient, *clock) {
	t.Helper()
	counters, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	decoded, err := decodeParams("oauth2", i.params())
	require.NoError(t, err)
	client, err := newIssuerClient(decoded, newTransport(nil, Config{RequestTimeout: time.Second, MaxConnsPerHost: 4}),
		counters, time.Second)
	require.NoError(t, err)
	t.Cleanup(client.http.CloseIdleConnections)
	c := &clock{at: time.Now()} // tokens end by the clock of the library
	client.now = c.now
	return client, c
}

func shows(t testing.TB, client *issuerClient) string {
	t.Helper()
	shown, err := client.prove(t.Context())
	require.NoError(t, err)
	return shown.authorization
}

func TestTokensOfIssuersAreShownToBrokers(t *testing.T) {
	issuer, broker := newFakeIssuer(t), newFakeBroker(t)
	broker.on("orders/partitions", needs("Bearer token-1", answers(notPartitioned)))
	broker.on("orders/stats", needs("Bearer token-1", answers(emptyTopic)))
	registry := prometheus.NewRegistry()
	source := newSource(t, Config{Registerer: registry, AuthPlugin: "oauth2", AuthParams: issuer.params()}, broker)
	for range 2 {
		_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Slim)
		require.NoError(t, err)
	}
	require.Equal(t, "token", broker.request(0).Header.Get("X-Pulsar-Auth-Method-Name"))
	require.Equal(t, []url.Values{{
		"grant_type": {"client_credentials"}, "client_id": {"me"}, "client_secret": {"s3cret"}, "audience": {"pulsar"},
		"scope": {"a b"},
	}}, issuer.asked(), "one token must do")
	require.Equal(t, map[string]float64{"discovery ok": 1, "token ok": 1},
		countedIn(t, registry, "pulsar_autoscaler_source_oauth2_requests_total"))
}

func TestTheIssuerIsAskedOnceForEverybody(t *testing.T) {
	issuer := newFakeIssuer(t)
	client, _ := issuer.client(t)
	var group errgroup.Group
	for range 50 {
		group.Go(func() error {
			shown, err := client.prove(t.Context())
			if err == nil && shown.authorization != "Bearer token-1" {
				err = errors.New("it shows " + shown.authorization)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Len(t, issuer.asked(), 1)
}

func TestTokensAreReplacedBeforeTheyEnd(t *testing.T) {
	issuer := newFakeIssuer(t)
	client, clock := issuer.client(t)
	require.Equal(t, "Bearer token-1", shows(t, client))
	clock.add(58 * time.Minute)
	require.Equal(t, "Bearer token-1", shows(t, client))
	clock.add(90 * time.Second)
	require.Equal(t, "Bearer token-2", shows(t, client))
	require.Len(t, issuer.asked(), 2)
}

func TestATokenServesWhileItsIssuerIsAway(t *testing.T) {
	issuer := newFakeIssuer(t)
	client, clock := issuer.client(t)
	require.Equal(t, "Bearer token-1", shows(t, client))
	issuer.on(nil, sends(http.StatusBadGateway, "text/html", ""))
	clock.add(59*time.Minute + 30*time.Second)
	for range 3 {
		require.Equal(t, "Bearer token-1", shows(t, client))
	}
	require.Len(t, issuer.asked(), 2, "a failure must not be repeated by everybody")
	clock.add(issuerPause)
	require.Equal(t, "Bearer token-1", shows(t, client))
	require.Len(t, issuer.asked(), 3)

	clock.add(time.Minute)
	for range 3 {
		_, err := client.prove(t.Context())
		require.ErrorIs(t, err, backlog.ErrUnavailable, "a token that has ended must not be shown")
	}
	require.Len(t, issuer.asked(), 4)
	issuer.on(nil, nil)
	clock.add(issuerPause)
	require.Equal(t, "Bearer token-5", shows(t, client))
}

func TestOneThatGivesUpDoesNotFailTheOthers(t *testing.T) {
	issuer := newFakeIssuer(t)
	client, _ := issuer.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.prove(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "Bearer token-1", shows(t, client))

	waiting, _ := issuer.client(t)
	waiting.turn <- struct{}{} // somebody asks, and does not come back
	_, err = waiting.prove(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestARefusedTokenIsReplacedUnlessItIsYoung(t *testing.T) {
	issuer := newFakeIssuer(t)
	client, clock := issuer.client(t)
	first, err := client.prove(t.Context())
	require.NoError(t, err)
	client.doubt(first)
	require.Equal(t, "Bearer token-1", shows(t, client), "a broker that knows no token would make everybody ask for more")
	clock.add(issuerPause)
	client.doubt(first)
	require.Equal(t, "Bearer token-2", shows(t, client))
	clock.add(issuerPause)
	client.doubt(first)
	require.Equal(t, "Bearer token-2", shows(t, client), "the doubt was about another")
}

func TestARefusedTokenServesOthersWhileItsIssuerIsAway(t *testing.T) {
	issuer := newFakeIssuer(t)
	client, clock := issuer.client(t)
	first, err := client.prove(t.Context())
	require.NoError(t, err)
	clock.add(issuerPause)
	issuer.on(nil, sends(http.StatusBadGateway, "text/html", ""))
	client.doubt(first) // by a cluster that does not trust the issuer
	for range 3 {
		require.Equal(t, "Bearer token-1", shows(t, client), "another cluster that the credentials are for still takes it")
	}
	require.Len(t, issuer.asked(), 2, "and one attempt does for all")
	issuer.on(nil, nil)
	clock.add(issuerPause)
	require.Equal(t, "Bearer token-3", shows(t, client))

	waiting, later := issuer.client(t)
	first, err = waiting.prove(t.Context())
	require.NoError(t, err)
	later.add(issuerPause)
	waiting.doubt(first)
	waiting.turn <- struct{}{} // somebody asks, and does not come back
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	shown, err := waiting.prove(ctx)
	require.NoError(t, err)
	require.Equal(t, first, shown)
}

func TestTokensWithoutAnEndAreReplacedAfterAWhile(t *testing.T) {
	issued := time.Now()
	require.Equal(t, issued.Add(4*time.Minute), newGrant("token", issued, time.Time{}).refreshed)
	require.Equal(t, issued.Add(8*time.Second), newGrant("token", issued, issued.Add(10*time.Second)).refreshed)
	require.Equal(t, issued.Add(59*time.Minute), newGrant("token", issued, issued.Add(time.Hour)).refreshed)
	require.Equal(t, issued.Add(4*time.Minute), newGrant("token", issued, issued.Add(-time.Second)).refreshed,
		"an end in the past would make every request ask for a token")
}

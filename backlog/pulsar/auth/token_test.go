// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

func sends(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// answers sends JSON, as an issuer does on success.
func answers(body string) http.HandlerFunc { return sends(http.StatusOK, "application/json", body) }

// fakeIssuer issues token-1, token-2 and so on, each valid for an hour of its clients' clocks.
type fakeIssuer struct {
	*httptest.Server

	mu sync.Mutex
	// forms, discovery and token are guarded by mu; the last two replace the usual answers.
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

func (i *fakeIssuer) requests() []url.Values {
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

// observed has the requests to issuers that Config.Observe reported.
type observed struct {
	mu sync.Mutex
	// calls are guarded by mu.
	calls []string
}

func (o *observed) add(call string, _ time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, fmt.Sprintf("%s %t", call, err == nil))
}

func testConfig(o *observed) Config {
	return Config{
		Transport: func(tlsConfig *tls.Config) *http.Transport {
			return &http.Transport{TLSClientConfig: tlsConfig, MaxConnsPerHost: 4}
		},
		Chain:         func(next http.RoundTripper) http.RoundTripper { return next },
		IssuerTimeout: time.Second,
		Observe:       o.add,
		Explain: func(err error) string {
			if errors.Is(err, context.DeadlineExceeded) {
				return "late"
			}
			return "broken"
		},
	}
}

func (i *fakeIssuer) source(t testing.TB) (*tokenSource, *clock) {
	t.Helper()
	decoded, err := authparams.Parse("oauth2", i.params())
	require.NoError(t, err)
	source, err := newTokenSource(material{Params: decoded}, testConfig(&observed{}))
	require.NoError(t, err)
	t.Cleanup(source.issuer.client.CloseIdleConnections)
	c := &clock{at: time.Now()} // tokens end by the clock of the library
	source.now = c.now
	return source, c
}

func shows(t testing.TB, source *tokenSource) string {
	t.Helper()
	shown, err := source.authenticate(t.Context())
	require.NoError(t, err)
	return shown.header()
}

func TestOneRequestForATokenServesAll(t *testing.T) {
	issuer := newFakeIssuer(t)
	source, _ := issuer.source(t)
	var group errgroup.Group
	for range 50 {
		group.Go(func() error {
			shown, err := source.authenticate(t.Context())
			if err == nil && shown.header() != "Bearer token-1" {
				err = errors.New("it shows " + shown.header())
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Len(t, issuer.requests(), 1)
}

func TestTokensAreReplacedBeforeTheyEnd(t *testing.T) {
	issuer := newFakeIssuer(t)
	source, clock := issuer.source(t)
	require.Equal(t, "Bearer token-1", shows(t, source))
	clock.add(58 * time.Minute)
	require.Equal(t, "Bearer token-1", shows(t, source))
	clock.add(90 * time.Second)
	require.Equal(t, "Bearer token-2", shows(t, source))
	require.Len(t, issuer.requests(), 2)
}

func TestATokenIsUsedWhileItsIssuerIsUnavailable(t *testing.T) {
	issuer := newFakeIssuer(t)
	source, clock := issuer.source(t)
	require.Equal(t, "Bearer token-1", shows(t, source))
	issuer.on(nil, sends(http.StatusBadGateway, "text/html", ""))
	clock.add(59*time.Minute + 30*time.Second)
	for range 3 {
		require.Equal(t, "Bearer token-1", shows(t, source))
	}
	require.Len(t, issuer.requests(), 2, "a failure must not be repeated by every request")
	clock.add(issuerPause)
	require.Equal(t, "Bearer token-1", shows(t, source))
	require.Len(t, issuer.requests(), 3)

	clock.add(time.Minute)
	for range 3 {
		_, err := source.authenticate(t.Context())
		require.ErrorIs(t, err, backlog.ErrUnavailable, "a token that has ended must not be shown")
	}
	require.Len(t, issuer.requests(), 4)
	issuer.on(nil, nil)
	clock.add(issuerPause)
	require.Equal(t, "Bearer token-5", shows(t, source))
}

func TestACanceledRequestDoesNotFailOthers(t *testing.T) {
	issuer := newFakeIssuer(t)
	source, _ := issuer.source(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := source.authenticate(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "Bearer token-1", shows(t, source))

	waiting, _ := issuer.source(t)
	waiting.turn <- struct{}{} // another request calls the issuer, and does not return
	_, err = waiting.authenticate(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestARefusedTokenIsReplacedUnlessItIsYoung(t *testing.T) {
	issuer := newFakeIssuer(t)
	source, clock := issuer.source(t)
	first, err := source.authenticate(t.Context())
	require.NoError(t, err)
	source.invalidate(first)
	require.Equal(t, "Bearer token-1", shows(t, source),
		"a broker that knows no token would make every request get another")
	clock.add(issuerPause)
	source.invalidate(first)
	require.Equal(t, "Bearer token-2", shows(t, source))
	clock.add(issuerPause)
	source.invalidate(first)
	require.Equal(t, "Bearer token-2", shows(t, source), "it was another that was refused")
}

// TestTokensThatStayRefusedAreReplacedMoreAndMoreRarely: brokers that do not trust the issuer refuse each of them.
func TestTokensThatStayRefusedAreReplacedMoreAndMoreRarely(t *testing.T) {
	for life, test := range map[string]struct {
		field string
		most  int
	}{
		"of a day": {`,"expires_in":86400`, 15},
		"unknown":  {"", 20}, // assumedLife alone takes 15
	} {
		t.Run(life, func(t *testing.T) {
			issuer := newFakeIssuer(t)
			issuer.on(nil, func(w http.ResponseWriter, r *http.Request) {
				answers(fmt.Sprintf(`{"access_token":"token-%d"%s}`, len(issuer.requests()), test.field))(w, r)
			})
			source, clock := issuer.source(t)
			for range time.Hour / issuerPause {
				var group errgroup.Group
				for range 3 {
					group.Go(func() error {
						shown, err := source.authenticate(t.Context())
						source.invalidate(shown)
						return err
					})
				}
				require.NoError(t, group.Wait())
				clock.add(issuerPause)
			}
			require.LessOrEqual(t, len(issuer.requests()), test.most)

			for range 2 { // a token that is not refused
				clock.add(25 * time.Hour)
				shows(t, source)
			}
			accepted, err := source.authenticate(t.Context())
			require.NoError(t, err)
			clock.add(issuerPause)
			source.invalidate(accepted)
			require.NotEqual(t, accepted.header(), shows(t, source))
		})
	}
}

func TestARefusedTokenIsUsedWhileItsIssuerIsUnavailable(t *testing.T) {
	issuer := newFakeIssuer(t)
	source, clock := issuer.source(t)
	first, err := source.authenticate(t.Context())
	require.NoError(t, err)
	clock.add(issuerPause)
	issuer.on(nil, sends(http.StatusBadGateway, "text/html", ""))
	source.invalidate(first) // by a cluster that does not trust the issuer
	for range 3 {
		require.Equal(t, "Bearer token-1", shows(t, source), "another cluster with these credentials still accepts it")
	}
	require.Len(t, issuer.requests(), 2, "and one attempt does for all")
	issuer.on(nil, nil)
	clock.add(issuerPause)
	require.Equal(t, "Bearer token-3", shows(t, source))

	waiting, later := issuer.source(t)
	first, err = waiting.authenticate(t.Context())
	require.NoError(t, err)
	later.add(issuerPause)
	waiting.invalidate(first)
	waiting.turn <- struct{}{} // another request calls the issuer, and does not return
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	shown, err := waiting.authenticate(ctx)
	require.NoError(t, err)
	require.Equal(t, first, shown)
}

func TestTokensWithoutAnEndAreReplacedAfterAWhile(t *testing.T) {
	issued := time.Now()
	require.Equal(t, issued.Add(4*time.Minute), newToken("token", issued, time.Time{}).refresh)
	require.Equal(t, issued.Add(8*time.Second), newToken("token", issued, issued.Add(10*time.Second)).refresh)
	require.Equal(t, issued.Add(59*time.Minute), newToken("token", issued, issued.Add(time.Hour)).refresh)
	require.Equal(t, issued.Add(4*time.Minute), newToken("token", issued, issued.Add(-time.Second)).refresh,
		"an end in the past would make every request get a token")
}

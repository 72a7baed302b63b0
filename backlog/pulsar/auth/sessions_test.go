// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

func tokenOf(text string) material {
	return material{Params: authparams.Params{Method: authparams.Token, Token: authparams.Value{Content: text}}}
}

// newTestSessions counts the built sessions.
func newTestSessions(t testing.TB) (sessions *sessions, built *int, at *clock) {
	t.Helper()
	built, at = new(int), &clock{at: time.Now()}
	config := testConfig(&observed{})
	config.Chain = func(next http.RoundTripper) http.RoundTripper {
		*built++
		return next
	}
	sessions = newSessions(config)
	sessions.now = at.now
	return sessions, built, at
}

func open(t testing.TB, sessions *sessions, token string) *session {
	t.Helper()
	opened, err := sessions.open(tokenOf(token))
	require.NoError(t, err)
	require.Equal(t, tokenOf(token), opened.material)
	return opened
}

func TestEqualCredentialsShareASession(t *testing.T) {
	sessions, built, _ := newTestSessions(t)
	first := open(t, sessions, "one")
	require.Same(t, first, open(t, sessions, "one"))
	require.NotSame(t, first, open(t, sessions, "two"))
	require.Equal(t, 2, *built)
}

func TestANameThatMovedIsLookedUpWithinAMinute(t *testing.T) {
	ends := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		answer.Header().Set("Connection-From", r.RemoteAddr)
		if r.URL.Path == "/long" {
			answer.(http.Flusher).Flush()
			<-ends
		}
	}))
	defer server.Close()
	config := testConfig(&observed{})
	config.Transport = func(*tls.Config) *http.Transport {
		return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		}}
	}
	credentials, err := New(config)
	require.NoError(t, err)
	defer credentials.Close()
	at := &clock{at: time.Now()}
	credentials.sessions.now = at.now
	request := func(path string) *http.Response {
		at.add(time.Second)
		transport, err := credentials.Authenticate(t.Context(), "")
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://moves.example"+path, nil)
		require.NoError(t, err)
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		return response
	}
	minutes := map[string]map[int]bool{} // by connection
	count := func(minute int, response *http.Response) {
		from := response.Header.Get("Connection-From")
		if minutes[from] == nil {
			minutes[from] = map[int]bool{}
		}
		minutes[from][minute] = true
	}
	long := request("/long")
	for second := 1; second < 180; second++ { // never idle for long
		response := request("/short")
		count(second/60, response)
		require.NoError(t, response.Body.Close())
		if second == 60 {
			count(0, long)
			close(ends)
			_, err := io.ReadAll(long.Body)
			require.NoError(t, err)
			require.NoError(t, long.Body.Close())
		}
	}
	require.Len(t, minutes, 4, "the long request, and one connection a minute: %v", minutes)
	for from, used := range minutes {
		require.Len(t, used, 1, from)
	}
}

func TestSessionsShareConnectionsUnlessTheirCertificatesDiffer(t *testing.T) {
	sessions, _, _ := newTestSessions(t)
	connections := func(m material) *connections {
		opened, err := sessions.open(m)
		require.NoError(t, err)
		return opened.connections
	}
	token, certificate := tokenOf("one"), material{Params: authparams.Params{Method: authparams.TLS}}
	shared := connections(token)
	for what, other := range map[string]material{
		"another token":         tokenOf("two"),
		"a user and a password": {Params: authparams.Params{Method: authparams.Basic, User: "user", Password: "pass"}},
		"no credentials":        {},
		"credentials of a name": {named: true},
	} {
		require.Same(t, shared, connections(other), what)
	}
	require.NotSame(t, shared, connections(material{insecure: true}))
	different := map[material]bool{token.certificates(): true}
	certificate.Certificate.Content, certificate.Key.Content = "certificate", "key"
	for _, other := range []material{
		{roots: "roots"},
		{insecure: true},
		{anyName: true},
		certificate,
		{Params: authparams.Params{Method: authparams.TLS, Key: certificate.Key}},
	} {
		different[other.certificates()] = true
	}
	require.Len(t, different, 6)
}

func TestUnusedSessionsAreDropped(t *testing.T) {
	sessions, _, at := newTestSessions(t)
	for i := range 10 {
		open(t, sessions, fmt.Sprint(i))
	}
	at.add(sessionIdle - time.Second)
	kept := open(t, sessions, "3")
	require.Len(t, sessions.byMaterial.Values(), 10)
	at.add(time.Minute)
	require.Same(t, kept, open(t, sessions, "3"))
	require.Len(t, sessions.byMaterial.Values(), 1)
	require.Len(t, sessions.connections.Values(), 1)
}

func TestSessionsAreBounded(t *testing.T) {
	sessions, _, at := newTestSessions(t)
	first := open(t, sessions, "first")
	for i := range maxSessions {
		at.add(time.Millisecond)
		open(t, sessions, "first")
		at.add(time.Millisecond)
		open(t, sessions, fmt.Sprint(i))
	}
	require.Len(t, sessions.byMaterial.Values(), maxSessions)
	require.Same(t, first, open(t, sessions, "first"), "the one that is used stays")
	_, held := sessions.byMaterial.Get(tokenOf("0"), at.now())
	require.False(t, held)
}

// With concurrent opens, closes and changes, each caller gets the requested session.
func TestSessionsUsedConcurrently(t *testing.T) {
	sessions, _, at := newTestSessions(t)
	var group errgroup.Group
	for hand := range 8 {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(hand)))
			for range 500 {
				want := tokenOf(fmt.Sprint(random.IntN(5)))
				got, err := sessions.open(want)
				if err != nil || got.material != want {
					return fmt.Errorf("opened %v: %w", got, err)
				}
				at.add(time.Second)
			}
			sessions.close()
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

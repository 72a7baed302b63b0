// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func tokenOf(text string) material {
	return material{params: params{method: methodToken, token: reference{content: text}}}
}

// newTestSessions counts what is built.
func newTestSessions(t testing.TB) (sessions *sessions, built *int, at *clock) {
	t.Helper()
	built, at = new(int), &clock{at: time.Now()}
	sessions = newSessions(func(m material) (*session, error) {
		*built++
		return &session{material: m, http: &http.Client{}, auth: constant{}}, nil
	})
	sessions.now = at.now
	return sessions, built, at
}

func open(t testing.TB, sessions *sessions, access, token string) *session {
	t.Helper()
	opened, err := sessions.open(access, tokenOf(token))
	require.NoError(t, err)
	require.Equal(t, tokenOf(token), opened.material)
	return opened
}

func TestEqualCredentialsShareASession(t *testing.T) {
	sessions, built, _ := newTestSessions(t)
	require.Same(t, open(t, sessions, "a", "one"), open(t, sessions, "b", "one"))
	require.NotSame(t, open(t, sessions, "a", "one"), open(t, sessions, "c", "two"))
	require.Equal(t, 2, *built)
}

func TestAChangedNameLeavesItsSessionToOthersOrToNobody(t *testing.T) {
	sessions, built, _ := newTestSessions(t)
	shared := open(t, sessions, "a", "one")
	open(t, sessions, "b", "one")
	open(t, sessions, "a", "two")
	require.Same(t, shared, open(t, sessions, "b", "one"))
	open(t, sessions, "b", "two")
	require.Len(t, sessions.byMaterial, 1)
	require.NotSame(t, shared, open(t, sessions, "b", "one"))
	require.Equal(t, 3, *built)
}

func TestSessionsThatNobodyUsesAreDropped(t *testing.T) {
	sessions, _, at := newTestSessions(t)
	for i := range 10 {
		open(t, sessions, fmt.Sprint(i), fmt.Sprint(i))
	}
	at.add(sessionIdle - time.Second)
	kept := open(t, sessions, "3", "3")
	require.Len(t, sessions.byMaterial, 10)
	at.add(sessionSweep)
	require.Same(t, kept, open(t, sessions, "3", "3"))
	require.Len(t, sessions.byMaterial, 1)
	require.Len(t, sessions.byAccess, 1)
}

func TestSessionsAreBounded(t *testing.T) {
	sessions, _, at := newTestSessions(t)
	first := open(t, sessions, "first", "first")
	for i := range maxSessions {
		at.add(time.Millisecond)
		open(t, sessions, "first", "first")
		at.add(time.Millisecond)
		open(t, sessions, fmt.Sprint(i), fmt.Sprint(i))
	}
	require.Len(t, sessions.byMaterial, maxSessions)
	require.Len(t, sessions.byAccess, maxSessions)
	require.Same(t, first, open(t, sessions, "first", "first"), "the one that is used stays")
	require.NotContains(t, sessions.byMaterial, tokenOf("0"))
}

// Whatever is opened, closed and changed at the same time: what is asked for is what comes, and no name points to a
// session that is not kept.
func TestSessionsUnderManyHands(t *testing.T) {
	at := &clock{at: time.Now()}
	sessions := newSessions(func(m material) (*session, error) {
		return &session{material: m, http: &http.Client{}, auth: constant{}}, nil
	})
	sessions.now = at.now
	var group errgroup.Group
	for hand := range 8 {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(hand))) //nolint:gosec // a repeatable order, nothing secret
			for range 500 {
				want := tokenOf(fmt.Sprint(random.IntN(5)))
				got, err := sessions.open(fmt.Sprint(random.IntN(4)), want)
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
	for name, used := range sessions.byAccess {
		require.Same(t, used.session, sessions.byMaterial[used.session.material], name)
	}
}

func TestAChangeOfCredentialsClosesTheOldConnections(t *testing.T) {
	broker := newOrders(t)
	known := &fakeCredentials{named: map[string]backlog.Credentials{"ns/secret": {Plugin: "token", Params: "old"}}}
	source := newSource(t, Config{Registerer: prometheus.NewRegistry(), Credentials: known}, broker)
	fetch := func() string {
		_, err := source.Fetch(t.Context(), broker.named("orders", "ns/secret"), backlog.Slim)
		require.NoError(t, err)
		return broker.request(len(broker.asked()) - 1).RemoteAddr
	}
	first := fetch()
	require.Equal(t, first, fetch())
	known.mu.Lock()
	known.named["ns/secret"] = backlog.Credentials{Plugin: "token", Params: "new"}
	known.mu.Unlock()
	require.NotEqual(t, first, fetch(), "a connection must not outlive the credentials that it was made under")
	require.Len(t, source.client.sessions.byMaterial, 1)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// fakeConnections is an auth.Source with some credentials of the administrator.
type fakeConnections struct {
	fakeCredentials
	urls map[string][]string
}

func (f *fakeConnections) Administered(access string) ([]string, bool) {
	urls, is := f.urls[access]
	return urls, is
}

// newStrictSource allows no host.
func newStrictSource(t *testing.T, known auth.Source) *Source {
	t.Helper()
	source, err := New(Config{Registerer: prometheus.NewRegistry(), Credentials: known})
	require.NoError(t, err)
	t.Cleanup(source.Close)
	return source
}

func TestAnAdministratorsCredentialsMayBeInFiles(t *testing.T) {
	broker := newOrders(t)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o600))
	inFile := backlog.Credentials{Plugin: "token", Params: "file://" + file}
	known := &fakeConnections{
		fakeCredentials{named: map[string]backlog.Credentials{"connection/east": inFile, "media/secret": inFile}},
		map[string][]string{"connection/east": {broker.URL}},
	}
	source := newStrictSource(t, known)
	for _, token := range []string{"first", "second"} {
		require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
		_, err := source.Fetch(t.Context(), broker.named("orders", "connection/east"),
			backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
		require.Equal(t, "Bearer "+token, broker.request(len(broker.requested())-1).Header.Get("Authorization"),
			"a rotated token is used at once")
	}
	require.NoError(t, os.Remove(file))
	_, err := source.Fetch(t.Context(), broker.named("orders", "connection/east"),
		backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrUnauthenticated)
	require.ErrorContains(t, err, "token file "+file)

	before := len(broker.requested())
	_, err = newSource(t, Config{Credentials: known}, broker).Fetch(
		t.Context(), broker.named("orders", "media/secret"), backlog.Request{Detail: backlog.Slim})

	require.ErrorIs(t, err, backlog.ErrUnsupported)
	require.ErrorContains(t, err, "names a file", "of a user it stays forbidden")
	require.Len(t, broker.requested(), before)
}

func TestAnAdministratorsCredentialsMayCallTheirIssuer(t *testing.T) {
	issuer, broker := newIssuer(t), newOrders(t)
	source := newStrictSource(t, &fakeConnections{
		fakeCredentials{named: map[string]backlog.Credentials{
			"connection/oauth": {Plugin: "oauth2", Params: issuerParams(issuer.URL + "/realm")},
		}},
		map[string][]string{"connection/oauth": {broker.URL}},
	})
	_, err := source.Fetch(t.Context(), broker.named("orders", "connection/oauth"), backlog.Request{Detail: backlog.Slim})
	require.NoError(t, err)
	require.Len(t, issuer.forms(), 1)
}

func TestAnAdministratorsCredentialsAreForConfiguredURLs(t *testing.T) {
	broker, other := newOrders(t), newOrders(t)
	source := newStrictSource(t, &fakeConnections{
		fakeCredentials{named: map[string]backlog.Credentials{
			"connection/east": {Plugin: "token", Params: "s3cret"},
			"media/secret":    {},
		}},
		map[string][]string{"connection/east": {broker.URL}},
	})
	for name, topic := range map[string]backlog.Topic{
		"another host":       other.named("orders", "connection/east"),
		"a user's":           broker.named("orders", "media/secret"),
		"the program's own ": broker.topic("orders"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, backlog.ErrHostNotAllowed)
			require.ErrorContains(t, err, "is not an allowed Pulsar host")
		})
	}
	require.Empty(t, other.requested())
	broker.on("orders/stats", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	_, err := source.Fetch(t.Context(), broker.named("orders", "connection/east"),
		backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrHostNotAllowed, "and a redirect does not move it")
	require.Empty(t, other.requested())
}

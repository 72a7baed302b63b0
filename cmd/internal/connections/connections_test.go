// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
)

// connectionsWorld is a file of connections with a log.
type connectionsWorld struct {
	*Connections
	t    *testing.T
	path string
	log  bytes.Buffer
}

func newConnectionsWorld(t *testing.T, text string) *connectionsWorld {
	t.Helper()
	w := &connectionsWorld{t: t, path: filepath.Join(t.TempDir(), "connections.yaml")}
	w.write(w.path, text)
	var err error
	w.Connections, err = New(w.path, slog.New(slog.NewTextHandler(&w.log, nil)))
	require.NoError(t, err)
	return w
}

// write replaces a file with another, as Kubernetes does.
func (w *connectionsWorld) write(path, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(w.t, os.Rename(path+".new", path))
}

func (w *connectionsWorld) lines() int { return strings.Count(w.log.String(), "\n") }

func TestAConnectionIsForItsNamespaces(t *testing.T) {
	w := newConnectionsWorld(t, twoConnections)
	cluster, worker, err := w.Resolve("west-2", "media")
	require.NoError(t, err)
	require.Equal(t, "https://pulsar.west", cluster.AdminURL)
	require.Equal(t, "connection/west-2@https://pulsar.west", cluster.Access)
	require.Empty(t, worker)
	cluster, worker, err = w.Resolve("east", "anywhere")
	require.NoError(t, err)
	require.Equal(t,
		backlog.Cluster{
			AdminURL: "http://pulsar.east:8080",
			Access:   "connection/east@http://pulsar.east:8080,http://worker.east:6750",
		}, cluster)
	require.Equal(t, "http://worker.east:6750", worker)
	for name, asked := range map[string]string{"of another namespace": "west-2", "that does not exist": "north"} {
		t.Run(name, func(t *testing.T) {
			_, _, err := w.Resolve(asked, "billing")
			require.ErrorIs(t, err, backlog.ErrUnsupported)
			require.EqualError(t, err,
				`not supported: connection "`+asked+`" is not for namespace billing, which may use east: correct connection, or have `+
					"it added to --connections-file of the scaler (value scaler.connections of the chart)", "it says nothing of what others have")
		})
	}
}

func TestWithoutAFileThereAreNoConnections(t *testing.T) {
	c, err := New("", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, _, err = c.Resolve("east", "media")
	require.ErrorContains(t, err, "which may use none")
}

func TestTheFileMustBeValidAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connections.yaml")
	_, err := New(path, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("connections: [{name: A, adminURL: 'http://a'}]"), 0o600))
	_, err = New(path, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "reading --connections-file "+path+`: connections[0].name is "A"`)
	require.NoError(t, os.WriteFile(path, make([]byte, authparams.MaxBytes+1), 0o600))
	_, err = New(path, slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "reading --connections-file "+path+": it is longer than 1048576 bytes")
}

func TestAChangedFileIsReadAgain(t *testing.T) {
	w := newConnectionsWorld(t, twoConnections)
	const north = "connections: [{name: north, adminURL: 'http://north'}]"
	knows := func(name string) bool { _, _, err := w.Resolve(name, "media"); return err == nil }
	w.write(w.path, north)
	require.True(t, knows("north"))
	require.False(t, knows("east"))
	require.Equal(t, 1, w.lines(), w.log.String())

	w.write(w.path, "connections: [{name: A}]")
	for range 3 {
		require.True(t, knows("north"), "a bad one changes nothing")
	}
	require.Equal(t, 2, w.lines(), "and is logged once: %s", w.log.String())
	require.NoError(t, os.Remove(w.path))
	for range 3 {
		require.True(t, knows("north"), "nor does a missing one")
	}
	require.Equal(t, 3, w.lines(), w.log.String())
	w.write(w.path, twoConnections)
	require.True(t, knows("east"))
	require.Equal(t, 4, w.lines(), w.log.String())
	for range 3 {
		require.True(t, knows("east"))
	}
	require.Equal(t, 4, w.lines(), "quiet when idle")
}

func TestConnectionsAreReadConcurrently(t *testing.T) {
	w := newConnectionsWorld(t, twoConnections)
	w.write(w.path, strings.Replace(twoConnections, "west-2", "west-3", 1))
	done := make(chan error)
	for range 20 {
		go func() {
			_, _, err := w.Resolve("east", "media")
			done <- err
		}()
	}
	for range 20 {
		require.NoError(t, <-done)
	}
	_, _, err := w.Resolve("west-3", "media")
	require.NoError(t, err)
}

// fakeObjects are credentials that objects name.
type fakeObjects struct{ invalidated []string }

func (f *fakeObjects) Credentials(_ context.Context, access string) (backlog.Credentials, error) {
	return backlog.Credentials{}, errors.New("asked the objects for " + access)
}

func (f *fakeObjects) Invalidate(access string) { f.invalidated = append(f.invalidated, access) }

func TestConnectionsAndObjectsHaveSeparateCredentials(t *testing.T) {
	w := newConnectionsWorld(t, twoConnections)
	objects := &fakeObjects{}
	all := w.Before(objects)
	const ofObject = "connection/secret#0123456789abcdef" // of a namespace named connection
	_, err := all.Credentials(t.Context(), ofObject)
	require.EqualError(t, err, "asked the objects for "+ofObject)
	cluster, _, err := w.Resolve("east", "media")
	require.NoError(t, err)
	found, err := all.Credentials(t.Context(), cluster.Access)
	require.NoError(t, err)
	require.Equal(t, backlog.Credentials{Plugin: "token", Params: "file:///etc/east/token"}, found)

	is, _ := all.(interface {
		Administered(access string) (urls []string, is bool)
		Invalidate(access string)
	})
	urls, known := is.Administered(cluster.Access)
	require.True(t, known)
	require.Equal(t, []string{"http://pulsar.east:8080", "http://worker.east:6750"}, urls)
	_, known = is.Administered(ofObject)
	require.False(t, known)
	is.Invalidate(ofObject)
	is.Invalidate(cluster.Access)
	require.Equal(t, []string{ofObject}, objects.invalidated)
}

func TestCredentialsAreNotSentToAFormerURL(t *testing.T) {
	w := newConnectionsWorld(t, twoConnections)
	cluster, _, err := w.Resolve("east", "media")
	require.NoError(t, err)
	w.write(w.path, strings.Replace(twoConnections, "Pulsar.East", "elsewhere", 1))
	_, err = w.Credentials(t.Context(), cluster.Access)
	require.ErrorIs(t, err, backlog.ErrUnauthenticated)
	require.ErrorContains(t, err, "or leads elsewhere now")
	_, known := w.Administered(cluster.Access)
	require.False(t, known)
	moved, _, err := w.Resolve("east", "media")
	require.NoError(t, err)
	_, err = w.Credentials(t.Context(), moved.Access)
	require.NoError(t, err)
}

// TestABrokerReceivesTheCredentialsOfItsConnection is end to end, with no allowed host but the connection's.
func TestABrokerReceivesTheCredentialsOfItsConnection(t *testing.T) {
	var shown []string
	broker := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		text := `{"msgInCounter":5,"subscriptions":{}}`
		if strings.HasSuffix(r.URL.Path, "/partitions") {
			text = `{"partitions":0}`
		}
		_, _ = w.Write([]byte(text))
	}))
	defer broker.Close()
	dir := t.TempDir()
	params, token, ca := filepath.Join(dir, "params"), filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	w := newConnectionsWorld(t,
		"connections: [{name: east, adminURL: '"+broker.URL+"', authPlugin: token, authParamsFile: "+params+
			", caFile: "+ca+"}]")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: broker.Certificate().Raw})
	for path, text := range map[string]string{params: "file://" + token, token: "first", ca: string(certificate)} {
		w.write(path, text)
	}
	cluster, _, err := w.Resolve("east", "media")
	require.NoError(t, err)
	w.write(ca, "is yet to come")
	_, err = w.Credentials(t.Context(), cluster.Access)
	require.ErrorContains(t, err,
		"caFile of connection east: "+ca+": it has no certificate: it must be PEM with at least one")
	w.write(ca, string(certificate))
	source, err := pulsar.New(pulsar.Config{Registerer: prometheus.NewRegistry(), Credentials: w.Before(&fakeObjects{})})
	require.NoError(t, err)
	defer source.Close()
	fetch := func() error {
		_, err := source.Fetch(t.Context(), backlog.Topic{Cluster: cluster, Name: "persistent://public/default/orders"},
			backlog.Request{Detail: backlog.Slim})

		return err
	}
	require.NoError(t, fetch())
	require.Equal(t, "Bearer first", shown[len(shown)-1])
	w.write(token, "second")
	require.NoError(t, fetch())
	require.Equal(t, "Bearer second", shown[len(shown)-1], "a rotated token is used at once")
	w.write(params, "token:third")
	require.NoError(t, fetch())
	require.Equal(t, "Bearer third", shown[len(shown)-1], "and so are other parameters")
	w.write(ca, "")
	require.NoError(t, fetch(), "a file of certificates that is just being written changes nothing")
	require.NoError(t, os.Remove(params))
	err = fetch()
	require.ErrorIs(t, err, backlog.ErrUnauthenticated)
	require.ErrorContains(t, err, "authParamsFile of connection east")
	w.write(params, strings.Repeat("x", authparams.MaxBytes+1))
	require.ErrorContains(t, fetch(), "is longer than 1048576 bytes")
}

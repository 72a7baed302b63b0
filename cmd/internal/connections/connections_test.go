// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

// connectionsWorld is a file of connections with a log.
type connectionsWorld struct {
	*Connections
	t       *testing.T
	objects fakeObjects
	path    string
	log     bytes.Buffer
}

func newConnectionsWorld(t *testing.T, text string) *connectionsWorld {
	t.Helper()
	w := &connectionsWorld{t: t, path: filepath.Join(t.TempDir(), "connections.yaml")}
	w.write(w.path, text)
	var err error
	w.Connections, err = New(w.path, &w.objects, slog.New(slog.NewTextHandler(&w.log, nil)))
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
	c, err := New("", nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, _, err = c.Resolve("east", "media")
	require.ErrorContains(t, err, "which may use none")
}

func TestTheFileMustBeValidAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "connections.yaml")
	_, err := New(path, nil, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("connections: [{name: A, adminURL: 'http://a'}]"), 0o600))
	_, err = New(path, nil, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "reading --connections-file "+path+`: connections[0].name is "A"`)
	require.NoError(t, os.WriteFile(path, make([]byte, authparams.MaxBytes+1), 0o600))
	_, err = New(path, nil, slog.New(slog.DiscardHandler))
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
	const ofObject = "connection/secret#0123456789abcdef" // of a namespace named connection
	_, err := w.Credentials(t.Context(), ofObject)
	require.EqualError(t, err, "asked the objects for "+ofObject)
	cluster, _, err := w.Resolve("east", "media")
	require.NoError(t, err)
	found, err := w.Credentials(t.Context(), cluster.Access)
	require.NoError(t, err)
	require.Equal(t, backlog.Credentials{Plugin: "token", Params: "file:///etc/east/token"}, found)

	urls, known := w.Administered(cluster.Access)
	require.True(t, known)
	require.Equal(t, []string{"http://pulsar.east:8080", "http://worker.east:6750"}, urls)
	_, known = w.Administered(ofObject)
	require.False(t, known)
	w.Invalidate(ofObject)
	w.Invalidate(cluster.Access)
	require.Equal(t, []string{ofObject}, w.objects.invalidated)
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

func TestTheFilesOfAConnectionAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	params, ca := filepath.Join(dir, "params"), filepath.Join(dir, "ca.crt")
	w := newConnectionsWorld(t, "connections: [{name: east, adminURL: 'https://east', authPlugin: token, authParamsFile: "+
		params+", caFile: "+ca+"}]")
	cluster, _, err := w.Resolve("east", "media")
	require.NoError(t, err)
	w.write(params, "file:///etc/token")
	w.write(ca, "is yet to come")
	_, err = w.Credentials(t.Context(), cluster.Access)
	require.ErrorContains(t, err,
		"caFile of connection east: "+ca+": it has no certificate: it must be PEM with at least one")
	authority, err := identity.NewAuthority("brokers")
	require.NoError(t, err)
	w.write(ca, authority.PEM())
	requireParams := func(params string) {
		t.Helper()
		found, err := w.Credentials(t.Context(), cluster.Access)
		require.NoError(t, err)
		require.Equal(t, backlog.Credentials{Plugin: "token", Params: params, TrustCerts: authority.PEM()}, found)
	}
	requireParams("file:///etc/token")
	w.write(params, "token:third")
	requireParams("token:third")
	for _, invalid := range []string{"", "is DER"} {
		w.write(ca, invalid)
		requireParams("token:third") // a file of certificates that is just being written changes nothing
	}
	require.Equal(t, 1, strings.Count(w.log.String(), "path="+ca), w.log.String())
	require.NoError(t, os.Remove(params))
	_, err = w.Credentials(t.Context(), cluster.Access)
	require.ErrorContains(t, err, "authParamsFile of connection east")
	w.write(params, strings.Repeat("x", authparams.MaxBytes+1))
	_, err = w.Credentials(t.Context(), cluster.Access)
	require.ErrorContains(t, err, "is longer than 1048576 bytes")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

// registryOf serves a registry on loopback and returns its address.
func registryOf(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestThePushedImagesAreThoseOfTheValues(t *testing.T) {
	root := checkout(t)
	// The version has a plus sign, and there is a plugin that cannot be built.
	require.NoError(t, os.WriteFile(filepath.Join(root, "LICENSE"), []byte("another"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(root, "cmd", "kubectl-absent"), 0o700))
	dist := filepath.Join(root, "dist")
	at := registryOf(t, registry.New(registry.Logger(log.New(io.Discard, "", 0)))) + "/a"
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-root", root, "-out", dist, "-push", "-registry", at + "/"}, &out))

	tag := at + "/hello:v1.2.3_dirty"
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Regexp(t, `^hello v1\.2\.3\+dirty sha256:[0-9a-f]{64}$`, lines[0])
	require.Equal(t, "pushed "+tag, lines[1])
	require.Equal(t, "helm install pulsar-autoscaler deploy/chart --namespace pulsar-autoscaler --create-namespace "+
		"--values dist/images.yaml --set pulsar.adminURL=<URL of Pulsar's admin service>", lines[len(lines)-1])
	digest := strings.Fields(lines[0])[2]
	require.Equal(t, "image:\n  registry: \""+at+"\"\n  digests:\n    hello: "+digest+"\n", read(t, dist, imagesFile))

	for _, reference := range []string{tag, at + "/hello@" + digest} {
		parsed, err := name.ParseReference(reference)
		require.NoError(t, err)
		pulled, err := remote.Index(parsed, remote.WithContext(t.Context()))
		require.NoError(t, err)
		require.NoError(t, validate.Index(pulled))
		got, err := pulled.Digest()
		require.NoError(t, err)
		require.Equal(t, digest, got.String())
		manifest, err := pulled.IndexManifest()
		require.NoError(t, err)
		require.Len(t, manifest.Manifests, 2)
	}
}

func TestPushSaysWhatItNeeds(t *testing.T) {
	refuses := registryOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	tests := map[string]struct {
		args []string
		want string
	}{
		"a registry": {nil, "-push needs -registry: run make push REGISTRY=<registry and path>"},
		"its name and no URL": {
			[]string{"-registry", "https://x.org/a"}, "REGISTRY (-registry) is the URL https://x.org/a: leave out what is before",
		},
		"a name that images may have": {
			[]string{"-registry", "x.org/A"}, "reading REGISTRY (-registry), which is like registry.example.org/",
		},
		"credentials where the registry wants them": {
			[]string{"-registry", refuses + "/a"}, "/a/hello:v1.2.3, with the credentials of docker login if there are any: ",
		},
		"a program that the chart deploys": {
			[]string{"-registry", "x.org/a", "-program", "kubectl-absent"}, `there is no "kubectl-absent": use one of hello`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := checkout(t)
			require.NoError(t, os.Mkdir(filepath.Join(root, "cmd", "kubectl-absent"), 0o700))
			args := append([]string{"-root", root, "-out", t.TempDir(), "-platform", "linux-amd64", "-push"}, test.args...)
			require.ErrorContains(t, run(t.Context(), args, io.Discard), test.want)
		})
	}
}

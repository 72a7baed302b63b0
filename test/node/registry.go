// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// loopback begins the names of images that this node pulls, over http.
const loopback = "127.0.0.1:"

// registry is a repository of a registry that is pulled into an OCI layout.
type registry struct{ url, layout string }

// pull pulls the image for this machine, which the name has with its digest, into an OCI layout.
func pull(ctx context.Context, name, layout string) error {
	repository, digest, found := strings.Cut(name, "@")
	host, path, _ := strings.Cut(repository, "/")
	if !found {
		return fmt.Errorf("pulling %s: this node pulls images by their digest", name)
	}
	r := registry{url: "http://" + host + "/v2/" + path, layout: layout}
	top := manifest{Manifests: []descriptor{{Digest: digest}}}
	text, err := json.Marshal(top)
	if err != nil {
		return fmt.Errorf("pulling %s: %w", name, err)
	}
	if err := os.MkdirAll(layout, 0o700); err != nil {
		return fmt.Errorf("pulling %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(layout, "index.json"), text, 0o600); err != nil {
		return fmt.Errorf("pulling %s: %w", name, err)
	}
	if err := r.pull(ctx, top); err != nil {
		return fmt.Errorf("pulling %s: %w", name, err)
	}
	return nil
}

func (r registry) pull(ctx context.Context, m manifest) error {
	for m.Config.Digest == "" {
		next, err := m.forThisMachine()
		if err != nil {
			return err
		}
		if err := r.fetch(ctx, "manifests", next); err != nil {
			return err
		}
		m = manifest{}
		if err := readJSON(next.path(r.layout), &m); err != nil {
			return err
		}
	}
	for _, d := range append([]descriptor{m.Config}, m.Layers...) {
		if err := r.fetch(ctx, "blobs", d); err != nil {
			return err
		}
	}
	return nil
}

// fetch writes what has the digest into the layout.
func (r registry) fetch(ctx context.Context, kind string, d descriptor) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/"+kind+"/"+d.Digest, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	content, err := io.ReadAll(io.LimitReader(response.Body, largestFile))
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); response.StatusCode != http.StatusOK || got != d.Digest {
		return fmt.Errorf("GET %s answered %s with content %s", request.URL, response.Status, got)
	}
	path := d.path(r.layout)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Unpack writes the files of an image for this machine below DIR/root, and its configuration as DIR/config.json, for
// tests: unpack SOURCE DIR. The source is an OCI layout, or the name of an image in a registry, with its digest.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: unpack SOURCE DIR")
		os.Exit(1)
	}
	if err := unpack(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "unpacking %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func unpack(ctx context.Context, source, dir string) (err error) {
	image, err := find(ctx, source)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	text, err := json.Marshal(config.Config)
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	err = errors.Join(os.MkdirAll(root, 0o755), os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600))
	if err != nil {
		return err
	}
	files := mutate.Extract(image)
	defer func() { err = errors.Join(err, files.Close()) }()
	tar := exec.CommandContext(ctx, "tar", "-x", "-C", root, "--no-same-owner", "--no-same-permissions")
	tar.Stdin, tar.Stderr = files, os.Stderr
	return tar.Run()
}

// find returns the image for this machine.
func find(ctx context.Context, source string) (v1.Image, error) {
	machine := v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	if _, err := os.Stat(source); err != nil {
		reference, err := name.NewDigest(source)
		if err != nil {
			return nil, err
		}
		return remote.Image(reference, remote.WithContext(ctx), remote.WithPlatform(machine))
	}
	outer, err := layout.ImageIndexFromPath(source)
	if err != nil {
		return nil, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest) // a layout has one image
	if err != nil {
		return nil, err
	}
	images, err := partial.FindImages(index, match.Platforms(machine))
	if err == nil && len(images) == 0 {
		err = fmt.Errorf("no image for %s", machine)
	}
	if err != nil {
		return nil, err
	}
	return images[0], nil
}

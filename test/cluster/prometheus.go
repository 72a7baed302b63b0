// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
	"path/filepath"
)

// PrometheusBins are the paths of Prometheus' binaries.
type PrometheusBins struct {
	Prometheus, Promtool string
	// Version of the Go module, e.g. "v0.316.0".
	Version string
}

func prometheusModule() module {
	return module{
		name: "prometheus", dir: "prometheus", pins: "github.com/prometheus/prometheus",
		packages: []string{
			"github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool",
		},
		tags:   "remove_all_sd", // without service discovery, whose clients are most of the build
		about:  "about 3 minutes on 2 cores",
		linker: func(string) string { return "" },
	}
}

// PrometheusBinaries returns Prometheus and promtool from the cache, and builds missing ones as Binaries does: about 3
// minutes on 2 cores.
func PrometheusBinaries(ctx context.Context, progress io.Writer) (PrometheusBins, error) {
	root, err := buildDir()
	if err != nil {
		return PrometheusBins{}, err
	}
	dir, version, err := prometheusModule().binaries(ctx, root, progress)
	if err != nil {
		return PrometheusBins{}, err
	}
	return PrometheusBins{
		Prometheus: filepath.Join(dir, "prometheus"), Promtool: filepath.Join(dir, "promtool"), Version: version,
	}, nil
}

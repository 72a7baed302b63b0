// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"io"
	"path/filepath"
)

// Prometheus has the paths of Prometheus' programs.
type Prometheus struct {
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

// BuildPrometheus returns Prometheus and promtool from the cache, and builds missing ones as BuildControlPlane does:
// about 3 minutes on 2 cores.
func BuildPrometheus(ctx context.Context, progress io.Writer) (Prometheus, error) {
	dir, version, err := prometheusModule().built(ctx, progress)
	if err != nil {
		return Prometheus{}, err
	}
	return Prometheus{
		Prometheus: filepath.Join(dir, "prometheus"), Promtool: filepath.Join(dir, "promtool"), Version: version,
	}, nil
}

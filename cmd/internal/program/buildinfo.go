// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// BuildInfo is a metric with the version.
func BuildInfo() prometheus.Collector {
	var version, revision string
	if info, found := debug.ReadBuildInfo(); found {
		version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	const unknown = "unknown"
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pulsar_autoscaler_build_info", Help: "Version and build of the program. Always 1.",
		ConstLabels: prometheus.Labels{
			"version": cmp.Or(version, unknown), "revision": cmp.Or(revision, unknown), "go_version": runtime.Version(),
		},
	}, func() float64 { return 1 })
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the version that the Go toolchain wrote into the binary: that of the commit's tag, else a pseudo-version,
// with +dirty for uncommitted changes; then the commit and the toolchain.
func Version(info *debug.BuildInfo) string {
	commit := ""
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = "commit " + setting.Value + ", "
		}
	}
	return fmt.Sprintf("%s (%s%s %s/%s)", info.Main.Version, commit, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}

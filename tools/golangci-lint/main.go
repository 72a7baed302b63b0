// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package main is golangci-lint with one linter more, kube-api-linter, which golangci-lint takes only when it is linked.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter" // registers kubeapilinter
)

func main() {
	if err := commands.Execute(build()); err != nil {
		fmt.Fprintln(os.Stderr, "golangci-lint:", err)
		os.Exit(exitcodes.Failure)
	}
}

// build says which golangci-lint this is. Its version is part of the key of its cache.
func build() commands.BuildInfo {
	const module = "github.com/golangci/golangci-lint/v2"
	info := commands.BuildInfo{Version: "unknown", GoVersion: "unknown"}
	if read, ok := debug.ReadBuildInfo(); ok {
		info.GoVersion = read.GoVersion
		for _, dependency := range read.Deps {
			if dependency.Path == module {
				info.Version = dependency.Version
			}
		}
	}
	return info
}

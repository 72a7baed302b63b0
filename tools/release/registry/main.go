// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Registry serves an image registry in memory, for tests: registry ADDRESS.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: registry ADDRESS")
		os.Exit(1)
	}
	const headers = 10 * time.Second
	server := http.Server{Addr: os.Args[1], Handler: registry.New(), ReadHeaderTimeout: headers}
	fmt.Fprintln(os.Stderr, "registry:", server.ListenAndServe())
	os.Exit(1)
}

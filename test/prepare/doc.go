// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command prepare fills the cache with what takes minutes to build or to fetch: for make demo and make test the control
// plane, our programs and Pulsar, and for make test-all also Prometheus, KEDA, Helm and a browser. What takes seconds
// is left to the tests. It fetches beside building, and says what it builds and for how long.
//
// Usage: go run ./test/prepare demo|test|all
//
// Layer 3. It starts no server and knows no test. It imports no client of Kubernetes or Pulsar: a new machine compiles
// it before anything else, in seconds.
package main

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command prepare fills the cache with what tests on real parts take minutes to fetch or build when they find it
// missing: the binaries of the control plane, of Prometheus, of KEDA and of Helm, the packages of the images, and
// Pulsar's distribution. What takes seconds is left to them. It may run beside the tests: of what is missing, one
// process makes each thing, and the others that need it wait.
//
// Floor 3. It starts no server and knows no test.
package main

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command gojson reads the output of "go test -bench", of any number of packages and runs, and writes the same numbers
// as JSON: the median, minimum and maximum of each benchmark and unit.
//
//	go test -run '^$' -bench . -benchmem -count 6 ./policy/... | go run ./bench/gojson > go.json
//
// Layer 3. It fails if a benchmark or a package failed, if a line of a benchmark cannot be read, and if there is no
// benchmark, because a pipe hides the exit code of "go test". It never compares runs, which is benchstat's job, and
// drops no sample as an outlier.
package main

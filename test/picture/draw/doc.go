// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command draw draws the charts of a page of package bench/page as a PNG file for the docs, with the browser of the
// tests: make pictures.
//
//	go run ./test/picture/draw bench/out/pictures/step.html docs/algorithm.png
//
// Layer 3. It decides nothing about the page.
package main

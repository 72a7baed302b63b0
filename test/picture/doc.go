// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package picture marks the pictures of the docs with the headings of the page that they show, so that a test can tell
// when the page has changed. Command test/picture/draw draws one: make pictures.
//
// Layer 3. It reads and writes bytes, and needs no browser.
package picture

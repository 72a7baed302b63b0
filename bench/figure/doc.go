// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package figure draws the plots of the demo and of the simulator, so that all look alike: panels one above the other
// that share a time axis, in colours that people who are colour blind can tell apart, as a PNG.
//
// Floor 3. It knows lines and labels; what they mean is its caller's.
package figure

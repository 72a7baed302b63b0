// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package rival has the controllers of the simulator that kubectl-pap does not need: those of other systems, an oracle
// that knows the future, and the plain form that every refinement has to beat. All lists them beside those of package
// baseline, where the handicaps and advantages of each are documented.
//
// Layer 3. Only the oracle reads the model directly; all others see what a real controller could see.
package rival

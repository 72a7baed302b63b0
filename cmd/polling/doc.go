// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package polling is how a program measures: the flags that say where Pulsar is and how often it is asked, and the
// readers of Pulsar and of instances with the loop that drives them.
//
// Floor 3, wiring, shared by the programs. It never decides, and does not know who asks for what is measured.
//
//	options.go, validate.go, derive.go   sections "Pulsar" and "Measuring" of the flags, and their bounds
//	polling.go                           flags -> readers -> loop
//	instances.go                         where the instances of a workload are asked
package polling

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package baseline has the controllers that kubectl-pap compares: those that users run today, and ours, which is the
// product's own Store and policy. Package rival has those that only the simulator of this repository compares.
//
// Handicaps and advantages: baselines that need a threshold get the true capacity of a replica at the start and the
// objective, which no user knows; the HPA on CPU has a correct request, and CPU without delay; the experts' HPAs have
// the default behavior, where a ScaledObject creates one without; KEDA never scales to zero during an outage; Flink
// adds replicas in place, evaluates every 15 s, and uses the mean and not the busiest replica. On several topics, KEDA
// with its defaults has a trigger for each, and the HPA follows the largest; the experts' add up. KEDA takes entries
// for messages, as do the thresholds of the experts; ours, Flink and the plain form know how many messages an entry
// has.
//
// Layer 3. All see what a real controller could see.
package baseline

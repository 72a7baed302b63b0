// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package baseline holds the controllers that the simulator compares: what users run today, what other systems do, an
// oracle that knows the future, the plain form that every refinement has to beat, and ours, which is the product's own
// Store and policy.
//
// The handicaps and advantages: baselines that need a threshold are told the true capacity of a replica at the start
// and the objective, which no user knows; the HPA on CPU has a request that is right, and CPU without delay; the
// experts' HPAs have the default behavior, where a ScaledObject makes one without; KEDA never scales to zero during an
// outage; Flink adds replicas in place, looks each 15 s, and uses the mean and not the busiest replica. On several
// topics, KEDA with its defaults has a trigger for each, and the HPA follows the largest; the experts' add up. KEDA
// takes entries for messages, the thresholds of the experts too; ours, Flink and the plain form know how many messages
// an entry has.
//
// Floor 3. It never looks into the model but through what a real controller could see; only the oracle does.
package baseline

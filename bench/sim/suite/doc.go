// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package suite has the loads that controllers are compared on: the named scenarios, each of which shows one thing that
// goes wrong in practice, and a generator of held-out ones from a seed, which no controller was tuned on.
//
// Floor 3. It has no controllers, and of the model only what the first Function of a chain hands on.
package suite

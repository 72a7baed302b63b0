// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package gitops checks how deployment tools judge policies: kstatus (Flux, Helm) as the library that they use, and
// Argo CD by the health checks of deploy/gitops, run as Argo CD runs them. Both read statuses computed by the
// controller's own code, which are recorded in the form of Argo CD's resource_customizations.
//
// Layer 3. It only has tests. Lua and kstatus are imported nowhere else.
package gitops

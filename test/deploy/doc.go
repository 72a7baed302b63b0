// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package deploy checks the manifests under deploy: that the API server would take every field, that nothing is left
// out of the kustomization, and that the parts fit each other and the adapter.
//
// Layer 3. It only has tests, and never applies anything.
package deploy

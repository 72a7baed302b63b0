// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Run runs a manager until ctx ends and all its runnables have ended. While a manager reads its caches it cannot be
// stopped: it uses a processor until they are read, which is never if the API server refuses it. Nothing else runs by
// then and it holds no Lease, so Run returns without it. The program must end then.
//
// Source: controller-runtime 0.25, pkg/manager/runnable_group.go, and its pull request 3440.
func Run(ctx context.Context, manager ctrl.Manager) error {
	ended, read := make(chan error, 1), make(chan struct{})
	go func() { ended <- manager.Start(ctx) }()
	go func() {
		if manager.GetCache().WaitForCacheSync(ctx) {
			close(read)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-read:
		return <-ended
	default:
		return nil
	}
}

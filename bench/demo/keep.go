// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// quietEvery is the interval between rows with -keep, so that the hints stay on screen.
const quietEvery = time.Minute

// keep continues with the low load until ctx ends, which is not an error here.
func (d *demo) keep(ctx context.Context, scene *stage.Stage, f *stage.Function) error {
	hints(d.out, scene.Cluster.Kubeconfig())
	output.Printf(d.out, "The load stays at %.0f messages/s. Ctrl-C stops everything.\n\n", d.scenario.low)
	d.screen.every = quietEvery
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return f.Publish(loading, load.Constant(d.scenario.low)) })
	err := d.watch(ctx, scene, f, time.Now(), func(sample) bool { return false })
	stop()
	if loadErr := group.Wait(); ctx.Err() == nil {
		return errors.Join(err, loadErr)
	}
	return nil
}

// hints are commands to try.
func hints(out io.Writer, kubeconfig string) {
	metric := fmt.Sprintf(
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/%s/autoscalingpolicies.pulsar-autoscaler.io/%s/%s",
		stage.Namespace, functionName, served.MetricDesiredReplicas)
	output.Printf(out, `
Everything is still running. In another terminal:

  export KUBECONFIG=%s
  kubectl get pap
  kubectl describe hpa %s
  kubectl get --raw %s
  kubectl scale functions.compute.functionmesh.io/%s --replicas=4   # the policy reverts it

`, kubeconfig, plan.AutoscalerName(functionName), metric, functionName)
}

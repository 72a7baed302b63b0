// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// crashLines of the log of a server that ended by itself are shown.
const crashLines = 30

// watch shows a sample a second until enough says that it was, a server crashes or ctx ends.
func (d *demo) watch(ctx context.Context, scene *stage.Stage, f *stage.Function, begun time.Time,
	enough func(sample) bool,
) error {
	timer := time.NewTimer(lookEvery) // not a ticker: after a stall of the machine it would tick twice at once
	defer timer.Stop()
	done, _ := f.Score.Totals()
	last := sample{published: f.Published(), done: int64(done)}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if err := crashed(scene); err != nil {
			return err
		}
		last = next(last, observe(ctx, scene, f, begun))
		timer.Reset(lookEvery)
		d.screen.show(last)
		if enough(last) {
			return nil
		}
	}
}

// observe looks at everything once.
func observe(ctx context.Context, scene *stage.Stage, f *stage.Function, begun time.Time) observation {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	o := observation{running: scene.Mesh.Running(stage.Namespace, f.Name)}
	o.policy, o.policyErr = f.Policy(ctx)
	o.replicas, o.replicasErr = f.Replicas(ctx)
	o.wait, _, o.anyDone = f.Score.Recent()
	done, _ := f.Score.Totals()
	o.published, o.done, o.at = f.Published(), int64(done), time.Since(begun)
	return o
}

// crashed says which server has ended by itself.
func crashed(scene *stage.Stage) error {
	select {
	case <-scene.Broker.Done():
		return fmt.Errorf("the broker has ended by itself; it printed:\n%s", scene.Broker.LogTail(crashLines))
	default:
	}
	for _, name := range []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager} {
		component := scene.Cluster.Component(name)
		select {
		case <-component.Done():
			return fmt.Errorf("%s has ended by itself; it printed:\n%s", name, component.LogTail(crashLines))
		default:
		}
	}
	return nil
}

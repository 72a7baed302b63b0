// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// RestartAPIServer kills the API server, as a crash does, restarts it on the same port with the data in etcd, and
// returns when it is ready: 2 to 4 s on an idle machine. Meanwhile connections are refused, and every watch ends.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	check, err := c.checkClient()
	if err != nil {
		return err
	}
	defer check.CloseIdleConnections()
	c.Component(APIServer).Kill()
	return c.run(ctx, c.apiServer(), check)
}

// run starts a component and waits until it is ready.
func (c *Cluster) run(ctx context.Context, component component, check *http.Client) error {
	p, err := proc.Start(c.alive, proc.Config{
		Name: component.name, Path: component.path, Args: component.args, Dir: c.dir,
		LogPath: filepath.Join(c.dir, "logs", component.name+".log"),
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.components[component.name] = p
	c.mu.Unlock()
	return WaitReady(ctx, p, func(ctx context.Context) (bool, string, error) {
		return Answers(ctx, check, component.ready)
	})
}

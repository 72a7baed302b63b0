// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// pod is a pod on this node.
type pod struct {
	object  *corev1.Pod
	number  int
	dir     string
	image   image
	volumes pods.Volumes
}

// find returns the container of a pod, once its image and its volumes are there.
func (n *Node) find(ctx context.Context, object *corev1.Pod) (*pods.Workload, error) {
	if err := unsupported(object); err != nil {
		return nil, pods.WaitingError{Reason: "CreateContainerConfigError", Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	found, err := n.images.find(ctx, object.Spec.Containers[0].Image)
	if err != nil {
		return nil, pods.WaitingError{Reason: "ErrImagePull", Err: err}
	}
	p := &pod{object: object, number: n.number, image: found}
	p.dir = filepath.Join(n.dir, "pod-"+string(object.UID))
	p.volumes = pods.NewVolumes(n.client, object, filepath.Join(p.dir, "volumes"))
	p.object.Status.PodIP = fmt.Sprintf("10.244.0.%d", firstAddress+n.number%mostPods)
	if err := p.volumes.Fill(ctx); err != nil {
		return nil, pods.WaitingError{Reason: "ContainerCreating", Err: fmt.Errorf("MountVolume.SetUp failed: %w", err)}
	}
	n.number++
	return &pods.Workload{
		Address: p.object.Status.PodIP, Start: p.start,
		Refresh: func(ctx context.Context) { _ = p.volumes.Fill(ctx) }, // old content stays, as on a node
		Remove:  func() { _ = os.RemoveAll(p.dir) },                    // the node's directory goes at the end
	}, nil
}

// start starts the container.
func (p *pod) start(ctx context.Context, restarts int32) (pods.Container, error) {
	uid, gid, err := identity(p.object, p.image.config)
	if err != nil {
		return nil, pods.WaitingError{Reason: "CreateContainerConfigError", Err: err}
	}
	becomes, err := p.container(restarts)
	if err != nil {
		return nil, pods.WaitingError{Reason: "CreateContainerConfigError", Err: err}
	}
	process, err := p.run(ctx, becomes, isolate(uid, gid), restarts)
	if err != nil {
		return nil, pods.WaitingError{Reason: "RunContainerError", Err: err}
	}
	return pods.Process(process, ""), nil
}

// container returns the container for the process. Each start has a new root.
func (p *pod) container(restarts int32) (container, error) {
	c := p.object.Spec.Containers[0]
	root := filepath.Join(p.dir, fmt.Sprintf("root-%d", restarts))
	if err := os.RemoveAll(root); err != nil {
		return container{}, err
	}
	mounts, err := p.image.layOut(p.object, root, p.volumes)
	if err != nil {
		return container{}, err
	}
	env := environment(p.object)
	args, err := command(c, p.image.config)
	if err != nil {
		return container{}, err
	}
	becomes := container{
		Root: root, Mounts: mounts, Address: p.object.Status.PodIP, Host: p.object.Name, Args: args,
		Env: slices.Clone(p.image.config.Env), Dir: "/" + strings.TrimPrefix(p.image.config.WorkingDir, "/"),
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		becomes.Env = append(becomes.Env, name+"="+env[name])
	}
	if s := c.SecurityContext; s != nil {
		becomes.ReadOnly = s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem
		becomes.NoNewPrivileges = s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation
	}
	return becomes, nil
}

func (p *pod) run(ctx context.Context, becomes container, isolate func(*syscall.SysProcAttr),
	restarts int32,
) (*proc.Process, error) {
	text, err := json.Marshal(becomes)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(p.dir, "container.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	process, err := proc.Start(ctx, proc.Config{
		Name: "pod " + p.object.Name, Path: "/proc/self/exe", Env: []string{variableContainer + "=" + path},
		Isolate: isolate,
	})
	if err != nil {
		return nil, err
	}
	if err := attach(ctx, process.Pid(), p.number*1000+int(restarts)%1000); err != nil {
		process.Kill()
		return nil, errors.Join(err, errors.New(process.LogTail(10)))
	}
	return process, nil
}

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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	// restartAfter is the pause before the restart of a container. A kubelet starts with 10 s.
	restartAfter = 2 * time.Second
	// refreshEvery is the interval of volume updates. A kubelet takes up to a minute.
	refreshEvery = 2 * time.Second
)

// pod is the state of a pod on this node.
type pod struct {
	client  kubernetes.Interface
	images  *images
	object  *corev1.Pod
	number  int
	dir     string
	address string
	volumes volumes

	process   *proc.Process
	started   time.Time
	refreshed time.Time
	restarts  int32
	// waiting is why there is no process, as in a container's state.
	waiting, message string
	ending           bool

	mu                           sync.Mutex // guards the probes, probing, and the process that they use
	startup, readiness, liveness probe
	probing                      bool
}

func (p *pod) ended() bool {
	select {
	case <-p.process.Done():
		return true
	default:
		return false
	}
}

func (p *pod) kill() {
	if p.process != nil {
		p.process.Kill()
	}
}

func (p *pod) logTail(lines int) string {
	if p.process == nil {
		return p.message
	}
	return p.process.LogTail(lines)
}

// terminate ends the process within the grace period of the deletion, and reports whether it has ended.
func (p *pod) terminate(object *corev1.Pod) (done bool) {
	if p.process == nil || p.ended() {
		return true
	}
	if !p.ending {
		p.ending = true
		grace := time.Second
		if object.DeletionGracePeriodSeconds != nil {
			grace = max(grace, time.Duration(*object.DeletionGracePeriodSeconds)*time.Second)
		}
		go func() { _ = p.process.Stop(grace) }() // as a kubelet, it kills the process after the grace period
	}
	return false
}

// follow starts a container that does not run, updates its volumes and probes it.
func (p *pod) follow(ctx context.Context, object *corev1.Pod) {
	p.object = object
	now := time.Now()
	switch {
	case p.process == nil:
		p.start(ctx)
	case p.ended() && !p.ending:
		p.waiting, p.message = "CrashLoopBackOff", "back-off restarting failed container"
		if now.Sub(p.started) >= restartAfter {
			p.restarts++
			p.start(ctx)
		}
	case now.Sub(p.refreshed) >= refreshEvery:
		p.refreshed = now
		_ = p.volumes.fill(ctx) // old content stays, as on a node
	}
	if p.process != nil && !p.ended() {
		p.probe(ctx, now)
	}
}

// start starts the container, or records why it cannot.
func (p *pod) start(ctx context.Context) {
	reason, err := p.tryStart(ctx)
	p.waiting, p.message = "", ""
	if err != nil {
		p.waiting, p.message = reason, err.Error()
	}
}

func (p *pod) tryStart(ctx context.Context) (reason string, err error) {
	if err := unsupported(p.object); err != nil {
		return "CreateContainerConfigError", err
	}
	c := p.object.Spec.Containers[0]
	found, err := p.images.find(ctx, c.Image)
	if err != nil {
		return "ErrImagePull", err
	}
	uid, gid, err := identity(p.object, found.config)
	if err != nil {
		return "CreateContainerConfigError", err
	}
	p.refreshed = time.Now()
	if err := p.volumes.fill(ctx); err != nil {
		return "ContainerCreating", fmt.Errorf("MountVolume.SetUp failed: %w", err)
	}
	p.object.Status.PodIP = p.address
	becomes, err := p.container(ctx, found)
	if err != nil {
		return "CreateContainerConfigError", err
	}
	if err := p.run(ctx, becomes, uid, gid); err != nil {
		return "RunContainerError", err
	}
	return "", nil
}

// container returns the container for the process. Each start has a new root.
func (p *pod) container(ctx context.Context, i image) (container, error) {
	c := p.object.Spec.Containers[0]
	root := filepath.Join(p.dir, fmt.Sprintf("root-%d", p.restarts))
	if err := os.RemoveAll(root); err != nil {
		return container{}, err
	}
	mounts, err := i.layOut(p.object, root, p.volumes)
	if err != nil {
		return container{}, err
	}
	env, err := environment(ctx, p.client, p.object)
	if err != nil {
		return container{}, err
	}
	args, err := command(c, i.config, env)
	if err != nil {
		return container{}, err
	}
	becomes := container{
		Root: root, Mounts: mounts, Address: p.address, Host: p.object.Name, Args: args,
		Env: slices.Clone(i.config.Env), Dir: "/" + strings.TrimPrefix(i.config.WorkingDir, "/"),
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

func (p *pod) run(ctx context.Context, becomes container, uid, gid int) error {
	text, err := json.Marshal(becomes)
	if err != nil {
		return err
	}
	path := filepath.Join(p.dir, "container.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	process, err := proc.Start(context.WithoutCancel(ctx), proc.Config{
		Name: "pod " + p.object.Name, Path: "/proc/self/exe", Env: []string{variableContainer + "=" + path},
		Isolate: isolate(uid, gid),
	})
	if err != nil {
		return err
	}
	if err := attach(ctx, process.Pid(), p.number*1000+int(p.restarts)%1000); err != nil {
		process.Kill()
		return errors.Join(err, errors.New(process.LogTail(10)))
	}
	now := time.Now()
	c := p.object.Spec.Containers[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process, p.started = process, now
	p.startup, p.readiness, p.liveness = newProbe(c.StartupProbe, now), newProbe(c.ReadinessProbe, now), newProbe(
		c.LivenessProbe, now)
	return nil
}

// probe makes due requests one after another, concurrently with the node, and ends a container after a failed startup
// or liveness probe.
func (p *pod) probe(ctx context.Context, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if (p.startup.fails() || p.startup.succeeds() && p.liveness.fails()) && !p.ending {
		go func() { _ = p.process.Stop(time.Second) }() // it may be killed
		return
	}
	due := []*probe{}
	if !p.startup.succeeds() {
		due = append(due, &p.startup)
	} else {
		due = append(due, &p.readiness, &p.liveness)
	}
	due = slices.DeleteFunc(due, func(one *probe) bool { return !one.due(now) })
	if p.probing || len(due) == 0 {
		return
	}
	p.probing = true
	c, process := p.object.Spec.Containers[0], p.process
	go func() {
		results := make([]error, len(due))
		for i, one := range due {
			results[i] = check(ctx, c, one.spec, p.address)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.probing = false
		for i, one := range due {
			if process == p.process { // else it was restarted
				*one = one.after(time.Now(), results[i])
			}
		}
	}()
}

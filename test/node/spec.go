// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// unsupported lists what this node does not support of the pod; nil for nothing.
func unsupported(pod *corev1.Pod) error {
	var errs []error
	refuse := func(refused bool, what string) {
		if refused {
			errs = append(errs, errors.New("this node runs no pod with "+what))
		}
	}
	refuse(len(pod.Spec.Containers) != 1, "more than one container")
	refuse(len(pod.Spec.InitContainers) > 0, "init containers")
	refuse(pod.Spec.HostNetwork, "hostNetwork")
	c := pod.Spec.Containers[0]
	refuse(c.Lifecycle != nil, "lifecycle hooks")
	refuse(len(c.EnvFrom) > 0, "envFrom")
	words := slices.Concat(c.Command, c.Args)
	for _, e := range c.Env {
		refuse(e.ValueFrom != nil, "valueFrom of a variable")
		words = append(words, e.Value)
	}
	refuse(strings.Contains(strings.Join(words, " "), "$("), "$(NAME) of a variable")
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		refuse(probe != nil && probe.HTTPGet == nil, "probes other than httpGet")
	}
	for i := range c.VolumeMounts {
		refuse(c.VolumeMounts[i].SubPath != "" || c.VolumeMounts[i].SubPathExpr != "", "subPath")
	}
	return errors.Join(errs...)
}

// identity is the user and group of the container from runAsUser, runAsGroup and the image. It is an error if
// runAsNonRoot forbids them.
func identity(pod *corev1.Pod, config imageConfig) (uid, gid int, err error) {
	user, group, _ := strings.Cut(config.User, ":")
	if uid, err = number(user); err != nil {
		return 0, 0, err
	}
	if gid, err = number(group); err != nil {
		return 0, 0, err
	}
	nonRoot := false
	if s := pod.Spec.SecurityContext; s != nil {
		uid, gid, nonRoot = pick64(s.RunAsUser, uid), pick64(s.RunAsGroup, gid), s.RunAsNonRoot != nil && *s.RunAsNonRoot
	}
	if s := pod.Spec.Containers[0].SecurityContext; s != nil {
		uid, gid = pick64(s.RunAsUser, uid), pick64(s.RunAsGroup, gid)
		nonRoot = nonRoot || s.RunAsNonRoot != nil && *s.RunAsNonRoot
	}
	if nonRoot && uid == 0 {
		return 0, 0, errors.New("container has runAsNonRoot and image will run as root")
	}
	return uid, gid, nil
}

func number(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("container has runAsNonRoot and image has non-numeric user %q", text)
	}
	return n, nil
}

func pick64(value *int64, otherwise int) int {
	if value == nil {
		return otherwise
	}
	return int(*value)
}

// environment returns the container's variables, without the image's.
func environment(pod *corev1.Pod) map[string]string {
	env := map[string]string{
		"HOSTNAME": pod.Name, "KUBERNETES_SERVICE_HOST": serviceOfAPIServer, "KUBERNETES_SERVICE_PORT": "443",
	}
	for _, e := range pod.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	return env
}

// command is the command of the container.
func command(c corev1.Container, config imageConfig) ([]string, error) {
	entrypoint, args := config.Entrypoint, config.Cmd
	if len(c.Command) > 0 {
		entrypoint, args = c.Command, nil
	}
	if len(c.Args) > 0 {
		args = c.Args
	}
	all := slices.Concat(entrypoint, args)
	if len(all) == 0 {
		return nil, errors.New("no command specified")
	}
	return all, nil
}

// layOut puts the image's files into root, creates the mount points, and returns the mounts.
func (i image) layOut(pod *corev1.Pod, root string, v pods.Volumes) ([]mount, error) {
	if err := i.copyTo(root); err != nil {
		return nil, err
	}
	mounts := []mount{}
	for _, name := range []string{"null", "zero", "random", "urandom"} {
		target := filepath.Join("/dev", name)
		mounts = append(mounts, mount{Source: target, Target: target})
	}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		mounts = append(mounts, mount{Source: v.Path(m.Name), Target: m.MountPath, ReadOnly: m.ReadOnly})
		if err := os.MkdirAll(filepath.Join(root, m.MountPath), 0o755); err != nil {
			return nil, err
		}
	}
	hosts := filepath.Join(root, "etc", "hosts")
	errs := []error{
		os.MkdirAll(filepath.Join(root, "proc"), 0o755), os.MkdirAll(filepath.Join(root, "dev"), 0o755),
		os.MkdirAll(filepath.Join(root, "etc"), 0o755),
		os.RemoveAll(hosts), // the image may have one
		os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"), 0o600),
	}
	for _, m := range mounts[:4] {
		errs = append(errs, os.WriteFile(filepath.Join(root, m.Target), nil, 0o600))
	}
	return mounts, errors.Join(errs...)
}

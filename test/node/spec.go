// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		refuse(probe != nil && probe.Exec != nil, "exec probes")
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
func environment(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (map[string]string, error) {
	env := map[string]string{
		"HOSTNAME": pod.Name, "KUBERNETES_SERVICE_HOST": serviceOfAPIServer, "KUBERNETES_SERVICE_PORT": "443",
	}
	c := pod.Spec.Containers[0]
	if len(c.EnvFrom) > 0 {
		return nil, errors.New("this node does not know envFrom")
	}
	for _, e := range c.Env {
		value, found, err := envValue(ctx, client, pod, e)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", e.Name, err)
		}
		if found {
			env[e.Name] = expand(value, env)
		}
	}
	return env, nil
}

func envValue(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, e corev1.EnvVar) (value string,
	found bool, err error,
) {
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value, true, nil
	case from.FieldRef != nil:
		value, err = pods.Field(pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		quantity, isSet := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(
			strings.TrimPrefix(from.ResourceFieldRef.Resource, "limits."))]
		if !isSet {
			return "", false, fmt.Errorf("this node does not know %s", from.ResourceFieldRef.Resource)
		}
		return strconv.FormatInt(quantity.Value(), 10), true, nil
	case from.SecretKeyRef != nil:
		secret, err := client.CoreV1().Secrets(pod.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		content, found := secret.Data[from.SecretKeyRef.Key]
		if !found {
			return "", false, fmt.Errorf("couldn't find key %s in Secret %s", from.SecretKeyRef.Key, secret.Name)
		}
		return string(content), true, nil
	}
	return "", false, errors.New("this node knows values, fields, limits and keys of Secrets only")
}

// expand replaces $(NAME), and keeps undefined ones, as Kubernetes does.
func expand(text string, env map[string]string) string {
	return regexp.MustCompile(`\$\$\([A-Za-z_][A-Za-z0-9_.-]*\)|\$\([A-Za-z_][A-Za-z0-9_.-]*\)`).ReplaceAllStringFunc(text,
		func(found string) string {
			if escaped, is := strings.CutPrefix(found, "$$"); is {
				return "$" + escaped
			}
			if value, is := env[found[2:len(found)-1]]; is {
				return value
			}
			return found
		})
}

// command is the command of the container.
func command(c corev1.Container, config imageConfig, env map[string]string) ([]string, error) {
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
	for i := range all {
		all[i] = expand(all[i], env)
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

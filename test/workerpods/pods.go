// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package workerpods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

const (
	// ofWorkers selects pods of Pulsar's function worker, and not Function Mesh's.
	ofWorkers = "component in (function,sink,source),tenant,!compute.functionmesh.io/component"
	// podIP is the address of all pods.
	podIP = "127.0.0.1"
)

// worker has what its pods run.
type worker struct {
	client kubernetes.Interface
	root   root
}

// Start runs the pods of a cluster until the end of the test, with instances of distribution.Version, which work with
// brokers of all Versions. It returns the directory of Pulsar, for broker.Kubernetes.
func Start(t *testing.T, cluster *rest.Config) (root string) {
	t.Helper()
	dist, err := distribution.Fetch(t.Context(), distribution.Version, os.Stderr)
	require.NoError(t, err)
	jar, err := replica.Jar(t.Context(), dist, os.Stderr)
	require.NoError(t, err)
	selector, err := labels.Parse(ofWorkers)
	require.NoError(t, err)
	w := &worker{}
	w.client, err = kubernetes.NewForConfig(cluster)
	require.NoError(t, err)
	runner, err := pods.New(pods.Config{REST: cluster, Find: w.find, Options: func(o *ctrl.Options) {
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: selector}}
	}})
	require.NoError(t, err)
	w.root, err = layOut(dist, jar)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return errors.Join(runner.Run(ctx), os.RemoveAll(w.root.dir)) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(runner.Explain())
		}
		stop()
		require.NoError(t, group.Wait())
	})
	return w.root.dir
}

// find returns the process of a pod: its own command. The worker deletes its pods without a grace period.
func (w *worker) find(_ context.Context, pod *corev1.Pod) (*pods.Workload, error) {
	command := pod.Spec.Containers[0].Command
	if len(command) == 0 {
		return nil, fmt.Errorf("pod %s/%s has no command", pod.Namespace, pod.Name)
	}
	return &pods.Workload{Address: podIP, Start: func(ctx context.Context, _ int32) (pods.Container, error) {
		mounted, err := w.mount(ctx, pod, command)
		if err != nil {
			return nil, pods.WaitingError{Reason: "ContainerCreating", Err: err}
		}
		ports, err := proc.FreePorts(2)
		if err != nil {
			return nil, err
		}
		process, err := proc.Start(ctx, w.root.config(pod.Name, mounted, ports))
		if err != nil {
			return nil, err
		}
		return pods.Process(process, fmt.Sprintf("http://%s:%d/metrics", podIP, ports[1])), nil
	}}, nil
}

// mount writes the Secrets of a pod's volumes, and returns its command with their directories in place of the paths in
// the container: the worker gives instances their token this way.
func (w *worker) mount(ctx context.Context, pod *corev1.Pod, command []string) (mounted []string, err error) {
	pod = pod.DeepCopy()
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Secret == nil })
	volumes := pods.NewVolumes(w.client, pod, w.root.path("volumes", string(pod.UID)))
	var paths []string
	for _, v := range pod.Spec.Volumes {
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			if m.Name == v.Name {
				paths = append(paths, m.MountPath, volumes.Path(v.Name))
			}
		}
	}
	replacer := strings.NewReplacer(paths...)
	for _, word := range command {
		mounted = append(mounted, replacer.Replace(word))
	}
	return mounted, volumes.Fill(ctx)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// lookEvery is the interval at which pods and Services are read.
	lookEvery = 200 * time.Millisecond
	// firstAddress is the first of pods in podNetwork; those before are the node's.
	firstAddress = 10
	// mostPods keeps addresses within one byte.
	mostPods = 240
)

// Controllers are controllers of kube-controller-manager that pods need in addition to the default ones.
func Controllers() []string {
	return []string{"endpoints-controller", "endpointslice-controller", "root-ca-certificate-publisher-controller"}
}

// Config configures a node. All fields are required.
type Config struct {
	// REST is the configuration of an administrator without a rate limit.
	REST *rest.Config
	// Name of the Node.
	Name string
	// Namespaces have the pods for this node; it ignores others.
	Namespaces []string
	// Images are directories of OCI layouts, by the image name of a container. Others are pulled if their registry is on
	// 127.0.0.1.
	Images map[string]string
}

// Node runs pods.
type Node struct {
	config Config
	client kubernetes.Interface
	proxy  *proxy
	names  *names
	dir    string
	images *images

	mu     sync.Mutex // guards the fields below, and the pods
	pods   map[types.UID]*pod
	number int
	err    error // of the last sync
}

// New unpacks the images and registers the node. Run runs it.
func New(ctx context.Context, config Config) (_ *Node, err error) {
	if config.REST == nil || config.Name == "" || len(config.Namespaces) == 0 || len(config.Images) == 0 {
		return nil, errors.New("node.Config: REST, Name, Namespaces and Images must be set")
	}
	n := &Node{config: config, pods: map[types.UID]*pod{}}
	if n.client, err = kubernetes.NewForConfig(config.REST); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if n.proxy, err = newProxy(n.client, config.REST.Host); err != nil {
		return nil, err
	}
	if n.dir, err = os.MkdirTemp("", "pulsar-autoscaler-node-"); err != nil {
		return nil, fmt.Errorf("making the node's directory: %w", err)
	}
	if err := n.prepare(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.dir))
	}
	return n, nil
}

func (n *Node) prepare(ctx context.Context) (err error) {
	if n.names, err = newNames(n.dir); err != nil {
		return err
	}
	n.images = &images{dir: n.dir, byName: map[string]image{}, byLayout: map[string]image{}}
	for name, layout := range n.config.Images {
		if err := n.images.unpack(name, layout); err != nil {
			return err
		}
	}
	_, err = n.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.config.Name}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("registering the node: %w", err)
	}
	return nil
}

// Run runs pods and forwards connections to Services until ctx ends, and returns when no process is left.
func (n *Node) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		n.mu.Lock()
		n.err = n.look(ctx)
		n.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	n.proxy.close()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		p.kill()
	}
	return os.RemoveAll(n.dir)
}

// Explain returns the last error and the last lines of each process, for a failed test.
func (n *Node) Explain() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := fmt.Sprintf("the node's last error: %v\n", n.err)
	for _, p := range n.pods {
		const lines = 15
		text += fmt.Sprintf("pod %s (%s), %d restarts, waiting for %q:\n%s\n", p.object.Name, p.object.Status.PodIP,
			p.restarts, p.waiting, p.logTail(lines))
	}
	return text
}

// look reads pods and Services once, and advances each pod.
func (n *Node) look(ctx context.Context) error {
	headless, err := n.proxy.follow(ctx)
	errs := []error{err}
	if err == nil {
		errs = append(errs, n.names.set(headless))
	}
	found := map[types.UID]bool{}
	for _, namespace := range n.config.Namespaces {
		pods, err := n.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for i := range pods.Items {
			found[pods.Items[i].UID] = true
			if err := n.step(ctx, &pods.Items[i]); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				errs = append(errs, fmt.Errorf("pod %s: %w", pods.Items[i].Name, err))
			}
		}
	}
	for uid, p := range n.pods {
		if !found[uid] {
			p.kill()
			errs = append(errs, os.RemoveAll(p.dir))
			delete(n.pods, uid)
		}
	}
	return errors.Join(errs...)
}

// step schedules a pod, or updates its process and its status.
func (n *Node) step(ctx context.Context, object *corev1.Pod) error {
	if object.Spec.NodeName == "" {
		if object.DeletionTimestamp != nil {
			return nil
		}
		return n.client.CoreV1().Pods(object.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace, UID: object.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: n.config.Name},
		}, metav1.CreateOptions{})
	}
	p := n.podOf(object)
	if object.DeletionTimestamp != nil && p.terminate(object) {
		now := int64(0)
		return n.client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(object.UID)),
		})
	}
	p.follow(ctx, object)
	return p.report(ctx)
}

// podOf returns the state of the pod on this node.
func (n *Node) podOf(object *corev1.Pod) *pod {
	p := n.pods[object.UID]
	if p == nil {
		p = &pod{
			client: n.client, images: n.images, object: object, number: n.number,
			dir:     filepath.Join(n.dir, "pod-"+string(object.UID)),
			address: fmt.Sprintf("10.244.0.%d", firstAddress+n.number%mostPods),
		}
		p.volumes = volumes{
			client: n.client, pod: object, dir: filepath.Join(p.dir, "volumes"), tokens: map[string][]byte{},
		}
		n.number++
		n.pods[object.UID] = p
	}
	return p
}

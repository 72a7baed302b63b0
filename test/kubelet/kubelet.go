// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// ofWorkers selects pods of Pulsar's function worker, and not Function Mesh's.
const ofWorkers = "component in (function,sink,source),tenant,!compute.functionmesh.io/component"

// restartAfter is the pause before the restart of a process that ended by itself.
const restartAfter = time.Second

// Config configures the pods. All fields are required.
type Config struct {
	// REST is the configuration of a client of the API server.
	REST *rest.Config
	// Dist has the Java instance: that of distribution.Version, which works with brokers of all Versions.
	Dist distribution.Pulsar
	// Jar is the package that pods download.
	Jar string
}

// Kubelet runs pods. Its methods may be called from any goroutine.
type Kubelet struct {
	manager ctrl.Manager
	client  client.Client
	// reader reads Secrets without a watch.
	reader  client.Reader
	root    root
	changed chan event.GenericEvent

	mu   sync.Mutex // guards pods
	pods map[types.NamespacedName]*pod
}

// pod is the process of a pod, across its restarts.
type pod struct {
	uid      types.UID
	process  *proc.Process
	metrics  int
	started  time.Time
	restarts int32
}

// New creates the directory of the pods. Run runs them and removes it.
func New(c Config) (*Kubelet, error) {
	if c.REST == nil || c.Dist.InstanceJar == "" || c.Jar == "" {
		return nil, errors.New("kubelet.Config: REST, Dist (with its InstanceJar) and Jar must be set")
	}
	selector, err := labels.Parse(ofWorkers)
	if err != nil {
		return nil, fmt.Errorf("selecting pods: %w", err)
	}
	again := true // controller names are per process, which may run several clusters
	manager, err := ctrl.NewManager(c.REST, ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &again},
		Cache:      cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: selector}}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the controller of pods: %w", err)
	}
	const buffer = 100
	k := &Kubelet{
		manager: manager, client: manager.GetClient(), reader: manager.GetAPIReader(),
		changed: make(chan event.GenericEvent, buffer), pods: map[types.NamespacedName]*pod{},
	}
	err = ctrl.NewControllerManagedBy(manager).Named("worker-pod").For(&corev1.Pod{}).
		WatchesRawSource(source.Channel(k.changed, &handler.EnqueueRequestForObject{})).Complete(k)
	if err != nil {
		return nil, fmt.Errorf("registering the controller of pods: %w", err)
	}
	k.root, err = layOut(c.Dist, c.Jar)
	return k, err
}

// Root is the directory of Pulsar, for broker.Kubernetes.
func (k *Kubelet) Root() string { return k.root.dir }

// Run runs pods until ctx ends, and returns when none is left.
func (k *Kubelet) Run(ctx context.Context) error {
	err := k.manager.Start(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		p.process.Kill()
	}
	clear(k.pods)
	return errors.Join(err, os.RemoveAll(k.root.dir))
}

// LogTail returns the last n lines of the pod's process; empty without a process.
func (k *Kubelet) LogTail(namespace, name string, n int) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[types.NamespacedName{Namespace: namespace, Name: name}]; p != nil {
		return p.process.LogTail(n)
	}
	return ""
}

// Reconcile makes processes follow pods. The worker deletes its pods without a grace period.
func (k *Kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object corev1.Pod
	err := k.client.Get(ctx, request.NamespacedName, &object)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading pod %s: %w", request, err)
	}
	gone := err != nil || object.DeletionTimestamp != nil
	running, wait, err := k.follow(ctx, request.NamespacedName, &object, gone)
	if err != nil || gone || running == nil {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	return ctrl.Result{RequeueAfter: wait}, k.report(ctx, &object, *running)
}

// follow starts and ends the process of a pod, and returns a copy of its state; nil for none. Call it again after wait.
func (k *Kubelet) follow(ctx context.Context, key types.NamespacedName, object *corev1.Pod, gone bool) (now *pod,
	wait time.Duration, err error,
) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[key]
	if p != nil && (gone || p.uid != object.UID) {
		p.process.Kill()
		delete(k.pods, key)
		p = nil
	}
	if gone {
		return nil, 0, nil
	}
	if p == nil {
		p = &pod{uid: object.UID}
		if err := k.start(ctx, p, object); err != nil {
			return nil, 0, err
		}
		k.pods[key] = p
	}
	if ended(p.process) {
		if since := time.Since(p.started); since < restartAfter {
			copied := *p
			return &copied, restartAfter - since, nil
		}
		p.restarts++
		if err := k.start(ctx, p, object); err != nil {
			return nil, 0, err
		}
	}
	copied := *p
	return &copied, 0, nil
}

func ended(p *proc.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// start runs the command of the pod's container. Only values of the caller's ctx are used, not its end.
func (k *Kubelet) start(ctx context.Context, p *pod, object *corev1.Pod) error {
	command := object.Spec.Containers[0].Command
	if len(command) == 0 {
		return fmt.Errorf("pod %s/%s has no command", object.Namespace, object.Name)
	}
	command, err := k.mount(ctx, object, command)
	if err != nil {
		return err
	}
	ports, err := proc.FreePorts(2)
	if err != nil {
		return err
	}
	process, err := proc.Start(context.WithoutCancel(ctx), k.root.config(object.Name, command, ports))
	if err != nil {
		return err
	}
	p.process, p.metrics, p.started = process, ports[1], time.Now()
	again := event.GenericEvent{Object: object}
	go func() {
		<-process.Done()
		select {
		case k.changed <- again:
		default: // the channel is full: its reader reads the state anyway
		}
	}()
	return nil
}

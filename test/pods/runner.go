// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// retryFind is the pause before another attempt to find what a misconfigured pod runs.
	retryFind = time.Second
	// retryStale is the pause before a retry with an outdated cache.
	retryStale = 10 * time.Millisecond
	// eventBuffer holds changes of containers while the controller is busy.
	eventBuffer = 1024
	// minGrace is the least grace period of a pod on a node, as of a kubelet.
	minGrace = time.Second
)

// ErrNotYet means that a pod does not start yet. Its status stays.
var ErrNotYet = errors.New("the pod does not start yet")

// WaitingError is why a container does not start, as in its state.
type WaitingError struct {
	Reason string
	Err    error
}

func (w WaitingError) Error() string { return w.Reason + ": " + w.Err.Error() }

func (w WaitingError) Unwrap() error { return w.Err }

// Container is one run of a pod's container. A replica.Replica is one.
//
//nolint:interfacebloat // the life of a container; replica.Replica has them too
type Container interface {
	// Ready is closed when the container runs. It is ready then, or once its probes succeed.
	Ready() <-chan struct{}
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// Stop lets it end, and kills it when ctx ends first.
	Stop(ctx context.Context) error
	// MetricsURL has the port that the pod announces in an annotation; empty for none.
	MetricsURL() string
}

// Workload is what a pod runs.
type Workload struct {
	// Of is the object with the pod in its history.
	Of client.ObjectKey
	// Address of the pod.
	Address string
	// Delay is waited before each Start, as for an image pull.
	Delay time.Duration
	// Start starts the container after that many restarts. A WaitingError as its error is the state of the container.
	Start func(ctx context.Context, restarts int32) (Container, error)
	// Refresh is called at times while the container runs, and Remove after the end of the pod; nil are no calls.
	Refresh func(ctx context.Context)
	Remove  func()
}

// Config configures a Runner. REST and Find are required.
type Config struct {
	// REST is the configuration of an administrator.
	REST *rest.Config
	// Options changes those of the manager, such as the pods in its cache; nil changes nothing.
	Options func(*ctrl.Options)
	// Find returns what a pod runs, nil for a pod that does not run here, ErrNotYet or a WaitingError. The runner calls
	// it again after an error.
	Find func(ctx context.Context, pod *corev1.Pod) (*Workload, error)
	// Backoff is the pause before the first restart of a container. It doubles up to 30 s until the container is ready;
	// 0 is 1 s (a kubelet's is 10 s).
	Backoff time.Duration
	// Grace is the grace period of pods without a node, and of all at the end; 0 kills.
	Grace time.Duration
	// Node is the name of the node to which pods are bound; empty binds none. A pod without a node disappears at its
	// deletion, and its container still ends within Grace.
	Node string
}

// Runner runs pods. Its methods may be called from any goroutine.
type Runner struct {
	// Manager is for further controllers.
	Manager ctrl.Manager

	config  Config
	client  client.Client
	changed chan event.GenericEvent
	closing chan struct{} // closed by close

	mu        sync.Mutex // guards the fields below and some fields of a unit
	closed    bool
	units     map[client.ObjectKey]*unit
	histories map[client.ObjectKey]*history
	running   sync.WaitGroup
}

// New returns a runner; Run runs it.
func New(c Config) (*Runner, error) {
	again := true // controller names are per process, which may run several clusters
	options := ctrl.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &again},
	}
	if c.Options != nil {
		c.Options(&options)
	}
	manager, err := ctrl.NewManager(c.REST, options)
	if err != nil {
		return nil, fmt.Errorf("making the controller of pods: %w", err)
	}
	r := newRunner(manager.GetClient(), c)
	r.Manager = manager
	err = ctrl.NewControllerManagedBy(manager).Named("pod").For(&corev1.Pod{}).
		WatchesRawSource(source.Channel(r.changed, &handler.EnqueueRequestForObject{})).Complete(r)
	if err != nil {
		return nil, fmt.Errorf("registering the controller of pods: %w", err)
	}
	return r, nil
}

func newRunner(c client.Client, config Config) *Runner {
	if config.Backoff == 0 {
		config.Backoff = defaultBackoff
	}
	return &Runner{
		config: config, client: c, changed: make(chan event.GenericEvent, eventBuffer), closing: make(chan struct{}),
		units: map[client.ObjectKey]*unit{}, histories: map[client.ObjectKey]*history{},
	}
}

// Run runs pods until ctx ends, ends all containers and returns. Call it once.
func (r *Runner) Run(ctx context.Context) error {
	err := r.Manager.Start(ctx)
	r.close()
	if err != nil {
		return fmt.Errorf("running pods: %w", err)
	}
	return nil
}

// Reconcile makes containers follow pods, and statuses follow containers.
func (r *Runner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, request.NamespacedName, pod)
	switch {
	case apierrors.IsNotFound(err):
		r.stop(request.NamespacedName, r.config.Grace)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading pod %s: %w", request, err)
	case pod.DeletionTimestamp != nil:
		err = r.terminate(ctx, pod)
	case r.config.Node != "" && pod.Spec.NodeName == "":
		err = r.bind(ctx, pod)
	default:
		return r.follow(ctx, pod)
	}
	return r.result(0, pod, err)
}

// result retries what met an outdated cache, and ignores a pod that has gone.
func (r *Runner) result(wait time.Duration, pod *corev1.Pod, err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: retryStale}, nil
	case client.IgnoreNotFound(err) != nil:
		return ctrl.Result{}, fmt.Errorf("running pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// bind schedules a pod.
func (r *Runner) bind(ctx context.Context, pod *corev1.Pod) error {
	return r.client.SubResource("binding").Create(ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: r.config.Node},
	})
}

// terminate ends the container of a deleted pod, and then removes a pod of the node.
func (r *Runner) terminate(ctx context.Context, pod *corev1.Pod) error {
	key := client.ObjectKeyFromObject(pod)
	if r.config.Node == "" {
		r.stop(key, r.config.Grace)
		return nil
	}
	grace := minGrace
	if pod.DeletionGracePeriodSeconds != nil {
		grace = max(grace, time.Duration(*pod.DeletionGracePeriodSeconds)*time.Second)
	}
	if r.stop(key, grace) {
		found, _ := r.look(key, pod.UID)
		return r.report(ctx, pod, found)
	}
	return r.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
}

// follow starts the container of a pod, and reports it.
func (r *Runner) follow(ctx context.Context, pod *corev1.Pod) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(pod)
	found, started := r.look(key, pod.UID)
	if started {
		return r.result(0, pod, r.report(ctx, pod, found))
	}
	workload, err := r.config.Find(ctx, pod.DeepCopy())
	var waiting WaitingError
	switch {
	case errors.Is(err, ErrNotYet):
		return ctrl.Result{RequeueAfter: retryStale}, nil
	case errors.As(err, &waiting):
		found = state{reason: waiting.Reason, message: waiting.Err.Error()}
		return r.result(retryFind, pod, r.report(ctx, pod, found))
	case err != nil || workload == nil:
		return r.result(0, pod, err)
	}
	r.start(ctx, key, pod, *workload)
	if found, started = r.look(key, pod.UID); !started {
		return ctrl.Result{}, nil // the runner ends
	}
	return r.result(0, pod, r.report(ctx, pod, found))
}

// tell sends the pod of a unit to the controller.
func (r *Runner) tell(u *unit) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.pod.Namespace, Name: u.pod.Name}}
	select {
	case r.changed <- event.GenericEvent{Object: pod}:
	case <-r.closing: // the reader may have ended
	}
}

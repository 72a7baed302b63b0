// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// podsUnknown is logged when the adapter may not list pods.
const podsUnknown = "pods are unknown: no instance is scraped, and decisions do not use pod health"

// watchedPods are the pods of one namespace, or of all. If one namespace may not be read, the pods of the rest stay
// known.
type watchedPods struct {
	namespace string
	// direct checks at the API server whether the adapter may list pods: a forbidden watch fails silently and never ends.
	direct client.Reader
	// watches of pods alone: the adapter works without them. There are two, because a watch has one selector.
	watches []podWatch
	// forbidden signals that a watch is forbidden; it holds one signal.
	forbidden chan struct{}

	// mu guards unknown.
	mu sync.Mutex
	// unknown is why pods are unknown; nil when they are known.
	unknown error
}

func newWatchedPods(direct client.Reader, namespace string) *watchedPods {
	return &watchedPods{
		namespace: namespace, direct: direct, forbidden: make(chan struct{}, 1), unknown: errPodsNotRead,
	}
}

func (p *watchedPods) logger(ctx context.Context) logr.Logger {
	logger := log.FromContext(ctx).WithName("pods")
	if p.namespace != metav1.NamespaceAll {
		logger = logger.WithValues("namespace", p.namespace)
	}
	return logger
}

// NeedLeaderElection is false: every replica scrapes instances.
func (p *Pods) NeedLeaderElection() bool { return false }

// Start watches pods until the context ends.
func (p *Pods) Start(ctx context.Context) error {
	var group errgroup.Group
	for _, watched := range p.watched {
		group.Go(func() error { watched.run(ctx); return nil })
	}
	return group.Wait()
}

func (p *watchedPods) unknownReason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unknown
}

// setUnknown records why pods are unknown, and returns whether that changed.
func (p *watchedPods) setUnknown(unknown error) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed = p.unknown == nil || unknown == nil || p.unknown.Error() != unknown.Error()
	p.unknown = unknown
	return changed
}

// run fills the cache as soon as the adapter may list pods, until the context ends. Forbidden pods are no error: the
// adapter works without them.
func (p *watchedPods) run(ctx context.Context) {
	logger := p.logger(ctx)
	listed := func(ctx context.Context) (bool, error) {
		problem := p.probe(ctx)
		if problem != nil && p.setUnknown(problem) && ctx.Err() == nil {
			logger.Error(problem, podsUnknown, "retryInterval", podProbeInterval.String())
		}
		return problem == nil, nil
	}
	if wait.PollUntilContextCancel(ctx, podProbeInterval, true, listed) != nil {
		return // stopping
	}
	p.setUnknown(errPodsNotRead)
	var group errgroup.Group
	synced := make([]toolscache.InformerSynced, 0, len(p.watches))
	for _, watch := range p.watches {
		synced = append(synced, watch.synced)
		group.Go(func() error { watch.run(ctx); return nil })
	}
	group.Go(func() error {
		if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
			return nil // stopping
		}
		select {
		case <-p.forbidden: // a signal from before this list
		default:
		}
		p.follow(ctx)
		return nil
	})
	_ = group.Wait() // none of them fails
}

// follow keeps p.unknown up to date while pods are watched.
func (p *watchedPods) follow(ctx context.Context) {
	logger := p.logger(ctx)
	for {
		p.setUnknown(nil)
		logger.Info("watching pods")
		select {
		case <-ctx.Done():
			return
		case <-p.forbidden:
		}
		p.setUnknown(errPodsForbidden)
		logger.Error(errPodsForbidden, podsUnknown, "retryInterval", podProbeInterval.String())
		if !p.regain(ctx) {
			return
		}
	}
}

// regain waits until the adapter may list pods again and has listed them: client-go retries a forbidden watch within a
// minute. It returns false when the context ends.
func (p *watchedPods) regain(ctx context.Context) bool {
	ticker := time.NewTicker(podProbeInterval)
	defer ticker.Stop()
	for allowed := false; ; {
		select {
		case <-ctx.Done():
			return false
		case <-p.forbidden:
			allowed = false
		case <-ticker.C:
			if allowed {
				return true
			}
			allowed = p.probe(ctx) == nil
		}
	}
}

// watchFailed signals a forbidden watch: the last list would stay for good, while its addresses pass to other pods. The
// API server checks the permission only when a watch begins, and a watch ends after 5 to 10 minutes.
func (p *watchedPods) watchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	select {
	case p.forbidden <- struct{}{}:
	default:
	}
}

// probe lists one pod with the selector of the watch.
func (p *watchedPods) probe(ctx context.Context) error {
	selector, err := instanceSelector()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, podProbeTimeout)
	defer cancel()
	err = p.direct.List(ctx, &corev1.PodList{}, client.Limit(1), client.InNamespace(p.namespace),
		client.MatchingLabelsSelector{Selector: selector})
	switch {
	case apierrors.IsForbidden(err):
		return errPodsForbidden
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: the API server takes longer than %s to list a pod", backlog.ErrNoData, podProbeTimeout)
	case err != nil:
		return fmt.Errorf("%w: listing pods: %w", backlog.ErrNoData, err)
	}
	return nil
}

type podSelection struct{ namespace, selector string }

// selectedPods is the health of selected pods, or why it is unknown.
type selectedPods struct {
	pods policy.Pods
	err  error
}

// Selected returns the health of the pods of a selector, such as those of a Deployment. They share no label by which to
// watch them, and a watch of all pods of a cluster is expensive. The API server lists them from its own cache, at most
// once per selectedTTL.
func (p *Pods) Selected(namespace, selector string) (policy.Pods, error) {
	found, err := p.selections.Find(context.Background(), podSelection{namespace, selector},
		func(ctx context.Context, k podSelection) (selectedPods, error) {
			pods, err := p.listSelected(ctx, k.namespace, k.selector)
			return selectedPods{pods: pods, err: err}, nil
		})
	if err != nil {
		return policy.Pods{}, err
	}
	return found.pods, found.err
}

func (p *Pods) listSelected(ctx context.Context, namespace, selector string) (policy.Pods, error) {
	parsed, err := labels.Parse(selector)
	if err != nil {
		return policy.Pods{}, fmt.Errorf("reading the selector of pods %q: %w", selector, err)
	}
	var list corev1.PodList
	err = p.direct.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: parsed},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	switch {
	case apierrors.IsForbidden(err):
		return policy.Pods{}, errPodsForbidden
	case err != nil:
		return policy.Pods{}, fmt.Errorf("listing the pods that %q selects in namespace %s: %w", selector, namespace, err)
	}
	running := int32(0)
	pods := make([]*instancePod, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].Status.Phase == corev1.PodRunning {
			running++ // a pod that is being deleted consumes until it ends
		}
		pods = append(pods, newInstancePod(&list.Items[i]))
	}
	sum := health(pods)
	sum.Running = &running
	return sum, nil
}

// selectedTTL is how long the health of selected pods is cached: a poll interval.
const selectedTTL = 10 * time.Second

func newSelections(now func() time.Time) *target.Lookups[podSelection, selectedPods] {
	return target.NewLookups[podSelection, selectedPods](now, selectedTTL)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

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

func (p *Pods) unknownReason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unknown
}

// setUnknown records why pods are unknown, and returns whether that changed.
func (p *Pods) setUnknown(unknown error) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed = p.unknown == nil || unknown == nil || p.unknown.Error() != unknown.Error()
	p.unknown = unknown
	return changed
}

// NeedLeaderElection is false: every replica scrapes instances.
func (p *Pods) NeedLeaderElection() bool { return false }

// Start fills the cache as soon as the adapter may list pods, until the context ends. Forbidden pods are no error: the
// adapter works without them.
func (p *Pods) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("pods")
	listed := func(ctx context.Context) (bool, error) {
		problem := p.probe(ctx)
		if problem != nil && p.setUnknown(problem) && ctx.Err() == nil {
			logger.Error(problem, podsUnknown, "retryInterval", podProbeInterval.String())
		}
		return problem == nil, nil
	}
	if wait.PollUntilContextCancel(ctx, podProbeInterval, true, listed) != nil {
		return nil //nolint:nilerr // stopping
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
	return group.Wait()
}

// follow keeps p.unknown up to date while pods are watched.
func (p *Pods) follow(ctx context.Context) {
	logger := log.FromContext(ctx).WithName("pods")
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
func (p *Pods) regain(ctx context.Context) bool {
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
func (p *Pods) watchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	select {
	case p.forbidden <- struct{}{}:
	default:
	}
}

// probe lists one pod of each namespace with the selector of the watch.
func (p *Pods) probe(ctx context.Context) error {
	selector, err := instanceSelector()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, podProbeTimeout)
	defer cancel()
	for _, namespace := range orAll(p.namespaces) {
		if err = p.direct.List(ctx, &corev1.PodList{}, client.Limit(1), client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: selector}); err != nil {
			break
		}
	}
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
		func(ctx context.Context) (selectedPods, bool, error) {
			pods, err := p.listSelected(ctx, namespace, selector)
			return selectedPods{pods: pods, err: err}, err != nil, nil
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

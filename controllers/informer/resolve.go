// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// resolve resolves a key, or queues it once more if a function worker has to answer: one that is slow delays only what
// it runs. The policy is read once: that of another version might need the worker after all.
func (s *Signals) resolve(ctx context.Context, k signalKey) {
	p, unread := s.policies.of(ctx, k)
	address, background := k.component.Address(), s.targets.Background
	if address == "" && unread == nil {
		address = s.targets.WorkerOf(ctx, p)
	}
	resolve := func(ctx context.Context) {
		timed, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		subscription, err := backlog.Subscription{}, unread
		if err == nil {
			subscription, err = s.subscriptionOf(timed, k, p)
		}
		s.resolved(ctx, k, subscription, err)
	}
	if address == "" || background == nil {
		resolve(ctx)
		return
	}
	background.Add(k.key.Namespace, address, resolve)
}

// resolved tracks the result of a resolution.
func (s *Signals) resolved(ctx context.Context, k signalKey, subscription backlog.Subscription, err error) {
	now := s.config.Clock()
	wanted, troubled := s.record(k, subscription, err, now)
	if wanted != nil {
		s.config.Store.TrackUntil(k.owner(), *wanted, now.Add(trackFor))
	}
	if troubled {
		log.FromContext(ctx).Error(err, "resolving a subscription", "key", k.String())
	}
}

// record stores the result of a resolution. It returns what to track, and whether this is the first of several
// failures. After a failure the last subscription, or the last reason why there is none, stays.
func (s *Signals) record(k signalKey, subscription backlog.Subscription, err error, now time.Time) (
	wanted *backlog.Subscription, troubled bool,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lookups[k]
	l.pending = false
	switch {
	case apierrors.IsNotFound(err):
		s.named.count(k, -1)
		delete(s.lookups, k)
	case err != nil && !k.isFinal(err):
		troubled = !l.failing
		l.failing, l.due = true, now.Add(resolveAfterError)
		// Before the first subscription the user needs the reason: a failing worker is usually the user's to fix.
		if k.component != (function.Component{}) && l.err != nil {
			l.err = err
		}
	case err != nil:
		l.failing, l.due, l.err = false, now.Add(resolveAgain), err
	default:
		l.failing, l.due, l.err = false, now.Add(resolveAgain), nil
		l.subscription, l.trackedAt = subscription, now
		tracked := l.wanted(now)
		wanted = &tracked
	}
	return wanted, troubled
}

// of reads the policy of a key; that of an object has its target alone.
func (p *Policies) of(ctx context.Context, k signalKey) (*v1alpha1.AutoscalingPolicy, error) {
	if k.resource == v1alpha1.GroupResource() {
		return p.read(ctx, k.key)
	}
	kind := cluster.KindFor(k.resource)
	return &v1alpha1.AutoscalingPolicy{Spec: v1alpha1.AutoscalingPolicySpec{ScaleTargetRef: v1alpha1.ScaleTargetRef{
		APIVersion: cluster.GVK(kind).GroupVersion().String(), Kind: kind, Name: k.key.Name,
	}}}, nil
}

// subscriptionOf returns the object's subscription: NotFound when the object is gone, a plan.Violation, or an error
// worth a retry.
func (s *Signals) subscriptionOf(ctx context.Context, k signalKey, p *v1alpha1.AutoscalingPolicy) (
	backlog.Subscription, error,
) {
	if k.component != (function.Component{}) {
		return s.targets.Workers.Subscription(ctx, k.component)
	}
	kind, spec := cluster.KindFor(k.resource), p.Spec
	if kind == cluster.KindStatefulSet {
		var err error
		if spec.Pulsar, err = s.policies.connection(ctx, k.key.Namespace, spec.ScaleTargetRef); err != nil {
			return backlog.Subscription{}, err
		}
	}
	if spec.Subscription != nil {
		return s.targets.Finder.Declared(ctx, k.key.Namespace, spec)
	}
	found, err := s.targets.Patient.Find(ctx, k.key.Namespace, spec)
	switch {
	case err != nil:
		return backlog.Subscription{}, err
	case found == nil && kind != "":
		return backlog.Subscription{}, apierrors.NewNotFound(k.resource, k.key.Name)
	case found != nil && found.Owner != "":
		return backlog.Subscription{}, plan.Controlled(found)
	default:
		return target.Consumed(found, k.key.Namespace, spec)
	}
}

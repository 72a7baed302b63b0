// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
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

// resolve looks for the way to an object's subscription and begins to track it.
func (s *Signals) resolve(ctx context.Context, a signalKey) {
	timed, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	subscription, err := s.subscriptionOf(timed, a)
	now := s.config.Now()
	wanted, troubled := s.record(a, subscription, err, now)
	if wanted != nil {
		s.config.Store.TrackUntil(a.owner(), *wanted, now.Add(trackFor))
	}
	if troubled {
		log.FromContext(ctx).Error(err, "looking up a subscription", "of", a.String())
	}
}

// record takes in what a look led to, and returns what to track, and whether the look is the first of a row in vain.
// Then the last good way, or the last word about why there is none, stays in force.
func (s *Signals) record(a signalKey, subscription backlog.Subscription, err error, now time.Time) (
	wanted *backlog.Subscription, troubled bool,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.lookups[a]
	if w == nil { // it expired: clients stopped requesting it
		return nil, false
	}
	w.pending = false
	switch {
	case apierrors.IsNotFound(err):
		delete(s.lookups, a)
	case err != nil && !a.isAnswer(err):
		troubled = !w.failing
		w.failing, w.due = true, now.Add(resolveAfterError)
		// no good way yet, and a worker's trouble is the user's as a rule
		if a.component != (function.Component{}) && w.err != nil {
			w.err = err
		}
	case err != nil:
		w.failing, w.due, w.err = false, now.Add(resolveAgain), err
	default:
		w.failing, w.due, w.err = false, now.Add(resolveAgain), nil
		w.subscription, w.trackedAt = subscription, now
		tracked := w.wanted(now)
		wanted = &tracked
	}
	return wanted, troubled
}

func isInvalid(err error) bool {
	var invalid target.InvalidError
	return errors.As(err, &invalid)
}

// subscriptionOf returns the object's subscription: NotFound when the object is gone, a InvalidError, or an error worth
// a retry.
func (s *Signals) subscriptionOf(ctx context.Context, a signalKey) (backlog.Subscription, error) {
	if a.component != (function.Component{}) {
		return s.config.Targets.Workers.Subscription(ctx, a.component)
	}
	kind := cluster.KindFor(a.resource)
	ref := v1alpha1.ScaleTargetRef{
		APIVersion: cluster.GVK(kind).GroupVersion().String(), Kind: kind, Name: a.key.Name,
	}
	spec := v1alpha1.AutoscalingPolicySpec{ScaleTargetRef: ref}
	if a.resource == v1alpha1.GroupResource() {
		p, err := s.config.Policies.read(ctx, a.key)
		if err != nil {
			return backlog.Subscription{}, err
		}
		spec = p.Spec
	}
	if kind == cluster.KindStatefulSet {
		var err error
		if spec.Pulsar, err = s.config.Policies.connection(ctx, a.key.Namespace, ref); err != nil {
			return backlog.Subscription{}, err
		}
	}
	if spec.Subscription != nil {
		return declared(ctx, s.config.Targets.Finder, a.key.Namespace, spec)
	}
	found, err := s.config.Targets.Finder.Find(ctx, a.key.Namespace, spec)
	switch {
	case err != nil:
		return backlog.Subscription{}, err
	case found.Unsupported != "":
		return backlog.Subscription{}, target.InvalidError(found.Unsupported)
	case found.Target == nil && kind != "":
		return backlog.Subscription{}, apierrors.NewNotFound(a.resource, a.key.Name)
	case found.Target == nil:
		return backlog.Subscription{},
			target.InvalidError(fmt.Sprintf("%s does not exist in namespace %s", plan.Name(spec), a.key.Namespace))
	case found.Target.Invalid != "":
		return backlog.Subscription{}, target.InvalidError(found.Target.Invalid)
	case found.Target.Owner != "":
		return backlog.Subscription{}, target.InvalidError(plan.Controlled(found.Target))
	default:
		return found.Target.Subscription, nil
	}
}

// declared is the subscription that a policy names; its target need not be read, nor be there.
func declared(ctx context.Context, finder *target.Finder, namespace string, spec v1alpha1.AutoscalingPolicySpec) (
	backlog.Subscription, error,
) {
	subscription, invalid, err := finder.Declared(ctx, namespace, spec)
	switch {
	case err != nil:
		return backlog.Subscription{}, err
	case invalid != "":
		return backlog.Subscription{}, target.InvalidError(invalid)
	default:
		return subscription, nil
	}
}

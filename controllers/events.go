// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

const reasonSubscriptionChanged = "SubscriptionChanged"

// recordEvent records an event about a policy and logs the same text.
func recordEvent(ctx context.Context, recorder events.EventRecorder, p *v1alpha1.AutoscalingPolicy, e report.Event) {
	note := plan.Shorten(e.Note, report.MaxNote)
	recorder.Eventf(p, nil, e.Type, e.Reason, e.Action, "%s", note)
	log.FromContext(ctx).Info("policy event", "type", e.Type, "reason", e.Reason, "action", e.Action, "note", note,
		"target", plan.ShortName(p.Spec))
}

// reportForgotten reports what was not resumed: a checkpoint that cannot be read, or one of another subscription.
func (r *PolicyReconciler) reportForgotten(ctx context.Context, p *v1alpha1.AutoscalingPolicy, unread error,
	forgotten bool,
) {
	if unread != nil {
		log.FromContext(ctx).Info("ignoring parts of status.workingCheckpoint", "why", unread.Error())
	}
	if forgotten {
		recordEvent(ctx, r.config.Recorder, p, report.Event{
			Type: corev1.EventTypeNormal, Reason: reasonSubscriptionChanged, Action: "Forget",
			Note: "spec.subscription names another subscription: what was measured of the last one is dropped",
		})
	}
}

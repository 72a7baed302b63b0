// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// mostEvents of a policy are shown.
const mostEvents = 20

// parseTime parses a time, or how long ago it was.
func parseTime(text string, now time.Time) (time.Time, error) {
	if before, err := time.ParseDuration(text); err == nil && before >= 0 {
		return now.Add(-before), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("--at is %q: it must be a time such as 2026-11-27T14:00:00Z, or how long ago, such as 10m",
			text)
	}
	return at, nil
}

// eventsOf are the events of a policy until a time, the newest first.
func eventsOf(ctx context.Context, from client.Reader, p *v1alpha1.AutoscalingPolicy,
	until time.Time,
) (section, error) {
	var found corev1.EventList
	about := fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.kind", v1alpha1.KindAutoscalingPolicy),
		fields.OneTermEqualSelector("involvedObject.name", p.Name))
	err := from.List(ctx, &found, client.InNamespace(p.Namespace), client.MatchingFieldsSelector{Selector: about})
	if err != nil {
		return section{}, fmt.Errorf("listing the events of policy %s: %w", p.Name, withFix(err))
	}
	events := slices.DeleteFunc(found.Items, func(e corev1.Event) bool { return began(e).After(until) })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return began(b).Compare(began(a)) })
	s := section{title: "EVENTS", note: "until " + until.UTC().Format(time.RFC3339) + ", the newest first"}
	for i := range events[:min(len(events), mostEvents)] {
		e := &events[i]
		times := ""
		if e.Series != nil {
			times = fmt.Sprintf(" (%d times until %s)", e.Series.Count, e.Series.LastObservedTime.UTC().Format(time.TimeOnly))
		}
		s.add(began(*e).UTC().Format(time.TimeOnly), "%s: %s%s", e.Reason, e.Message, times)
	}
	if len(events) == 0 {
		s.add("none", "Kubernetes keeps events for an hour, unless the API server has another --event-ttl")
	}
	return s, nil
}

// began is when an event was first reported.
func began(e corev1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

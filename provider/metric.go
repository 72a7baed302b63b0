// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// unit is the format of a served number.
type unit int

const (
	// whole numbers: messages, replicas, consumers, and 0 or 1 for a boolean.
	whole unit = iota
	// fraction numbers have three decimals: seconds, and shares from 0 to 1.
	fraction
	// perSecond numbers have three decimals and the window of their measurement.
	perSecond
)

// metric is one row of the list of served metrics. Names are one URL path segment in lower case.
type metric struct {
	name string
	help string
	unit unit
	// detail to measure for it, beyond the default.
	detail backlog.Detail
	// measure selects the number of a reading; nil for the decision, which only a policy has.
	measure func(backlog.Reading) backlog.Measurement
	// taken returns the time and window of the measurement; nil for the reading's own.
	taken func(backlog.Reading) (at time.Time, window time.Duration)
}

func (m metric) policyOnly() bool { return m.measure == nil }

// when returns the time and, for rates, the window of the measurement.
func (m metric) when(r backlog.Reading) (at time.Time, window time.Duration) {
	if m.taken != nil {
		return m.taken(r)
	}
	if m.unit == perSecond {
		return r.At, r.Window
	}
	return r.At, 0
}

// described is a kind of object with metrics.
type described struct {
	resource   schema.GroupResource
	apiVersion string
	kind       string
	isPolicy   bool
}

// describedKinds are constant: discovery would call the API server, and the mapper of the custom metrics library never
// notices a CRD that was installed later.
func describedKinds() []described {
	kinds := []described{{
		resource:   v1alpha1.GroupResource(),
		apiVersion: v1alpha1.GroupVersion().String(),
		kind:       v1alpha1.KindAutoscalingPolicy,
		isPolicy:   true,
	}}
	for _, kind := range []string{"Function", "Sink", "Source"} {
		kinds = append(kinds, described{
			resource:   schema.GroupResource{Group: "compute.functionmesh.io", Resource: strings.ToLower(kind) + "s"},
			apiVersion: "compute.functionmesh.io/v1alpha1",
			kind:       kind,
		})
	}
	return append(kinds, described{
		resource: schema.GroupResource{Group: "apps", Resource: "statefulsets"}, apiVersion: "apps/v1", kind: "StatefulSet",
	})
}

// describedResources lists them for messages.
func describedResources() string {
	var names []string
	for _, kind := range describedKinds() {
		names = append(names, kind.resource.String())
	}
	return strings.Join(names, ", ")
}

// serves reports whether the kind has the metric.
func (d described) serves(m metric) bool { return d.isPolicy || !m.policyOnly() }

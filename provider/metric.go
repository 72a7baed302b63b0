// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// unit says how a number is served.
type unit int

const (
	// whole numbers: messages, replicas, consumers.
	whole unit = iota
	// perSecond numbers have three decimals and carry the window they were measured over.
	perSecond
)

// metric is one row of the list of what is served. Names are one URL path segment in lower case.
type metric struct {
	name string
	help string
	unit unit
	// measure picks the number out of a reading; nil for the decision, which only a policy has.
	measure func(backlog.Reading) backlog.Measurement
}

func (m metric) policyOnly() bool { return m.measure == nil }

// servedMetrics is everything that is served. The list is constant: it has no entry per object, since listing clients
// read it whole.
func servedMetrics() []metric {
	return []metric{
		{
			name: policy.MetricDesiredReplicas, unit: whole,
			help: "Replicas that were decided, within the policy's minReplicas and maxReplicas.",
		},
		{
			name: "pulsar_function_backlog_messages", unit: whole,
			help:    "Messages not acknowledged: waiting, delayed and dispatched ones.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.Total },
		},
		{
			name: "pulsar_function_backlog_ready_messages", unit: whole,
			help:    "Backlog without messages whose delay has not passed.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.Ready },
		},
		{
			name: "pulsar_function_backlog_undispatched_messages", unit: whole,
			help:    "Ready messages that no replica holds yet; for Shared and Key_Shared.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.Undispatched },
		},
		{
			name: "pulsar_function_delayed_messages", unit: whole,
			help:    "Messages whose delay has not passed.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.Delayed },
		},
		{
			name: "pulsar_function_unacked_messages", unit: whole,
			help:    "Messages that replicas hold and have not acknowledged; for Shared and Key_Shared.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.Unacked },
		},
		{
			name: "pulsar_function_publish_rate", unit: perSecond,
			help:    "Messages per second that arrive.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.PublishRate },
		},
		{
			name: "pulsar_function_process_rate", unit: perSecond,
			help:    "Messages per second that replicas finish.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.ProcessRate },
		},
		{
			name: "pulsar_function_consumers", unit: whole,
			help:    "Replicas that are connected and consuming.",
			measure: func(r backlog.Reading) backlog.Measurement { return r.Consumers },
		},
	}
}

// described is a kind of object that metrics are about.
type described struct {
	resource   schema.GroupResource
	apiVersion string
	kind       string
	isPolicy   bool
}

// describedKinds are written down rather than discovered: discovery would be a call to the API server, and the mapper
// of the custom metrics library never learns of a CRD that was installed later.
func describedKinds() []described {
	return []described{
		{
			resource:   v1alpha1.GroupResource(),
			apiVersion: v1alpha1.GroupVersion().String(),
			kind:       v1alpha1.KindAutoscalingPolicy,
			isPolicy:   true,
		},
		{
			resource:   schema.GroupResource{Group: "compute.functionmesh.io", Resource: "functions"},
			apiVersion: "compute.functionmesh.io/v1alpha1",
			kind:       "Function",
		},
	}
}

// serves says whether the kind has the metric.
func (d described) serves(m metric) bool { return d.isPolicy || !m.policyOnly() }

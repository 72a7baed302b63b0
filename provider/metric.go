// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
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
	unit unit
	// detail to measure for it, beyond the default.
	detail backlog.Detail
	// measure selects the number of a reading; nil for the decision, which only a policy has.
	measure func(backlog.Reading) backlog.Measurement
	// taken returns the time and window of the measurement; nil for the reading's own.
	taken func(backlog.Reading) (at time.Time, window time.Duration)
}

func newMetric(name string, unit unit, measure func(backlog.Reading) backlog.Measurement) metric {
	return metric{name: name, unit: unit, measure: measure}
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

type described struct {
	resource   schema.GroupResource
	apiVersion string
	kind       string
}

// describedKinds are constant, the policy first: discovery would call the API server, and the mapper of the custom
// metrics library never notices a CRD that was installed later.
func describedKinds() []described {
	kinds := []described{{
		resource:   v1alpha1.GroupResource(),
		apiVersion: v1alpha1.GroupVersion().String(),
		kind:       v1alpha1.KindAutoscalingPolicy,
	}}
	for _, workload := range v1alpha1.WorkloadKinds() {
		kind := string(workload)
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

func describedResources() string {
	var names []string
	for _, kind := range describedKinds() {
		names = append(names, kind.resource.String())
	}
	return strings.Join(names, ", ")
}

func (d described) isPolicy() bool { return d.kind == v1alpha1.KindAutoscalingPolicy }

func (d described) serves(m metric) bool { return d.isPolicy() || !m.policyOnly() }

// quantity returns the number in its served format.
func quantity(value float64, u unit) (resource.Quantity, error) {
	value, err := response.Number(value)
	if err != nil {
		return resource.Quantity{}, err
	}
	if u != whole {
		return *resource.NewMilliQuantity(int64(math.Round(value*1000)), resource.DecimalSI), nil
	}
	return *resource.NewQuantity(int64(math.Round(value)), resource.DecimalSI), nil
}

// servedMetrics returns all served metrics. The list is constant: it has no entry per object, because listing clients
// read it whole.
func servedMetrics() []metric {
	decision := metric{name: served.MetricDesiredReplicas, unit: whole}
	return slices.Concat([]metric{decision}, backlogMetrics(), rateMetrics(), consumerMetrics(), instanceMetrics())
}

func backlogMetrics() []metric {
	return []metric{
		newMetric("pulsar_function_backlog_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Total }),
		newMetric("pulsar_function_backlog_ready_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Ready }),
		newMetric("pulsar_function_backlog_undispatched_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Undispatched }),
		{
			name: "pulsar_function_backlog_bytes", unit: whole, detail: backlog.Bytes,
			measure: func(r backlog.Reading) backlog.Measurement { return r.Bytes },
		},
		newMetric("pulsar_function_delayed_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Delayed }),
		newMetric("pulsar_function_unacked_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Unacked }),
		newMetric("pulsar_function_in_replay_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.InReplay }),
		{
			name: "pulsar_function_oldest_unacked_message_age_seconds", unit: fraction,
			measure: func(r backlog.Reading) backlog.Measurement { return r.OldestAge },
			taken:   func(r backlog.Reading) (time.Time, time.Duration) { return r.OldestAt, 0 },
		},
	}
}

func rateMetrics() []metric {
	return []metric{
		newMetric("pulsar_function_publish_rate", perSecond,
			func(r backlog.Reading) backlog.Measurement { return r.PublishRate }),
		newMetric("pulsar_function_delivery_rate", perSecond,
			func(r backlog.Reading) backlog.Measurement { return r.DeliveryRate }),
		newMetric("pulsar_function_process_rate", perSecond,
			func(r backlog.Reading) backlog.Measurement { return r.ProcessRate }),
	}
}

// consumerMetrics are metrics of the replicas as the broker reports them.
func consumerMetrics() []metric {
	return []metric{
		newMetric("pulsar_function_consumers", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Consumers }),
		newMetric("pulsar_function_unread_partitions", whole,
			func(r backlog.Reading) backlog.Measurement { return r.UnreadPartitions }),
		newMetric("pulsar_function_unread_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.UnreadMessages }),
		newMetric("pulsar_function_blocked", whole,
			func(r backlog.Reading) backlog.Measurement { return oneIf(r.Blocked, r.InReplay) }),
		newMetric("pulsar_function_throttled", whole,
			func(r backlog.Reading) backlog.Measurement { return oneIf(r.Throttled, r.DeliveryRate) }),
		newMetric("pulsar_function_draining", whole,
			func(r backlog.Reading) backlog.Measurement { return oneIf(r.Draining, r.InReplay) }),
	}
}

// instanceMetrics are from the instances' own counters.
func instanceMetrics() []metric {
	metrics := []metric{
		newMetric("pulsar_function_busy_ratio", fraction,
			func(r backlog.Reading) backlog.Measurement { return r.Instances.Busy }),
		newMetric("pulsar_function_service_time_seconds", fraction,
			func(r backlog.Reading) backlog.Measurement { return r.Instances.ServiceTime }),
		{
			name: "pulsar_function_exception_rate", unit: perSecond,
			measure: func(r backlog.Reading) backlog.Measurement {
				return sum(r.Instances.UserExceptionRate, r.Instances.SystemExceptionRate)
			},
		},
		newMetric("pulsar_function_in_flight_messages", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Instances.InFlight }),
		newMetric("pulsar_function_silent_instances", whole,
			func(r backlog.Reading) backlog.Measurement { return r.Instances.Silent }),
	}
	for i := range metrics {
		isInstant := metrics[i].unit == whole
		metrics[i].taken = func(r backlog.Reading) (time.Time, time.Duration) {
			if isInstant {
				return r.Instances.At, 0
			}
			return r.Instances.At, r.Instances.Window
		}
	}
	return metrics
}

// oneIf is 1 if it holds for a part of the topics. It is 0 only if the number that Pulsar reports beside it is known
// for all of them.
func oneIf(holds bool, beside backlog.Measurement) backlog.Measurement {
	if holds {
		return backlog.Known(1)
	}
	if _, err := beside.Value(); err != nil {
		return backlog.Unknown(err)
	}
	return backlog.Known(0)
}

// sum is known if both are.
func sum(a, b backlog.Measurement) backlog.Measurement {
	x, err := a.Value()
	if err != nil {
		return a
	}
	y, err := b.Value()
	if err != nil {
		return b
	}
	return backlog.Known(x + y)
}

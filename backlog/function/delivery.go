// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"

// delivery determines how instances subscribe and acknowledge, in the worker's spelling.
type delivery struct {
	guarantees                        string
	retainOrdering, retainKeyOrdering bool
	window                            *window
}

// window is windowConfig; all three descriptions spell it alike.
type window struct {
	Guarantees string `json:"processingGuarantees"`
}

// Values of processingGuarantees that matter here.
const (
	guaranteeEffectivelyOnce = "EFFECTIVELY_ONCE"
	guaranteeManual          = "MANUAL"
)

// subscriptionType follows the documented rule, for all runtimes: workers refuse retainKeyOrdering for Go until the
// release in which Go instances support it (apache/pulsar#26414, #26421). An instance with an older library then
// subscribes as Shared, which the broker reports.
//
// Source: org.apache.pulsar.functions.utils.FunctionConfigUtils.convert and SinkConfigUtils.convert; Function Mesh's
// getSubscriptionType (controllers/spec/utils.go).
func (d delivery) subscriptionType() backlog.SubscriptionType {
	switch {
	case d.retainOrdering || d.guarantees == guaranteeEffectivelyOnce:
		return backlog.Failover
	case d.retainKeyOrdering:
		return backlog.KeyShared
	default:
		return backlog.Shared
	}
}

// neverAcknowledges reports whether neither the framework nor the window acknowledges.
//
// Source: Pulsar's WindowFunctionExecutor and JavaInstanceRunnable.handleResult: with MANUAL outside, only the window's
// own guarantee makes it acknowledge.
func (d delivery) neverAcknowledges() bool {
	return d.window != nil && d.guarantees == guaranteeManual && d.window.Guarantees == ""
}

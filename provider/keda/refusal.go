// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
)

// refusalEnds a text to which KEDA adds " defined multiple times in ScaledObject <name>".
const refusalEnds = ". Correct the trigger: KEDA tells this as a metric"

// refusal is the answer to GetMetricSpec for metadata that are wrong. KEDA logs an error of that call, and no more; of
// the calls that follow it tells in events alone. But of two metrics with one name it tells the name in the condition
// Ready of the ScaledObject (reason ScaledObjectCheckFailed), makes no HorizontalPodAutoscaler and starts no polling
// until the ScaledObject changes.
//
// Source: KEDA 2.21, controllers/keda/hpa.go, getScaledObjectMetricSpecs.
func refusal(err error) *pb.GetMetricSpecResponse {
	spec := &pb.MetricSpec{MetricName: oneLine(err) + refusalEnds, TargetSize: 1, TargetSizeFloat: 1}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{spec, spec}}
}

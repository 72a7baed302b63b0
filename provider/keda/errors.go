// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"fmt"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

// statusError is the status for an error; nil and errors of gRPC itself stay as they are. KEDA treats all codes alike,
// and shows the text in the events of the ScaledObject.
func statusError(err error) error {
	if _, isStatus := status.FromError(err); isStatus {
		return err
	}
	if errors.Is(err, ErrMetadata) {
		return status.Error(codes.InvalidArgument, err.Error()) // already bounded
	}
	return status.Error(codeOf(answer.ReasonOf(err)), answer.Text(err))
}

func codeOf(reason answer.Reason) codes.Code {
	switch reason {
	case answer.NotFound:
		return codes.NotFound
	case answer.Invalid:
		return codes.InvalidArgument
	case answer.Unsupported:
		return codes.FailedPrecondition
	case answer.Unknown:
		return codes.Unavailable
	case answer.TooSlow:
		return codes.DeadlineExceeded
	case answer.Busy:
		return codes.ResourceExhausted
	case answer.Canceled:
		return codes.Canceled
	default:
		return codes.Internal
	}
}

// unread is the error for a subject that could not be read.
func unread(subject Subject, err error) error {
	failed := answer.Unread(subject.describe(), err)
	if answer.ReasonOf(failed) == answer.NotFound {
		return answer.Errorf(answer.NotFound, "%s: create it, or correct the metadata of the trigger", failed)
	}
	return failed
}

// mostTopicsShown bounds a list of topics in a message: the text after it has the fix, and must not be cut off.
const mostTopicsShown = 160

// describe names the subject for messages.
func (s Subject) describe() string {
	switch {
	case s.Policy != "":
		return fmt.Sprintf("AutoscalingPolicy %q in namespace %q", s.Policy, s.Namespace)
	case s.Target.Name != "":
		return fmt.Sprintf("%s %q in namespace %q", s.Target.Kind, s.Target.Name, s.Namespace)
	case s.Component.Name != "":
		return fmt.Sprintf("%s %s/%s/%s", s.Component.Kind, s.Component.Tenant, s.Component.Namespace, s.Component.Name)
	default:
		return fmt.Sprintf("subscription %q on %s", answer.Shorten(s.Subscription, mostShown),
			answer.Shorten(s.Topics, mostTopicsShown))
	}
}

// invalidEnds a text to which KEDA adds " defined multiple times in ScaledObject <name>".
const invalidEnds = ". Correct the trigger: KEDA reports this as a metric"

// invalidMetricSpec is the response to GetMetricSpec for invalid metadata. KEDA only logs an error of that call, and
// shows errors of later calls only in events. But it puts the name of a metric that is defined twice into the condition
// Ready of the ScaledObject (reason ScaledObjectCheckFailed), creates no HorizontalPodAutoscaler and does not poll
// until the ScaledObject changes.
//
// Source: KEDA 2.21, controllers/keda/hpa.go, getScaledObjectMetricSpecs.
func invalidMetricSpec(err error) *pb.GetMetricSpecResponse {
	spec := &pb.MetricSpec{MetricName: err.Error() + invalidEnds, TargetSize: 1, TargetSizeFloat: 1}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{spec, spec}}
}

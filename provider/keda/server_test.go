// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// value requests the metric of the trigger as KEDA does: by the name that GetMetricSpec returned.
func value(t *testing.T, s *Server, of *pb.ScaledObjectRef) (*pb.MetricValue, error) {
	t.Helper()
	spec, err := s.GetMetricSpec(t.Context(), of)
	if err != nil {
		return nil, err
	}
	answer, err := s.GetMetrics(t.Context(),
		&pb.GetMetricsRequest{ScaledObjectRef: of, MetricName: spec.GetMetricSpecs()[0].GetMetricName()})
	if err != nil {
		return nil, err
	}
	require.Len(t, answer.GetMetricValues(), 1, "KEDA adds them up")
	return answer.GetMetricValues()[0], nil
}

func TestAnswersAreWholeNumbersAndFractions(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	r := reading(env.now)
	r.PublishRate = backlog.Known(0.25)
	env.readings[topicSubject()] = r
	of := ref("topic", "orders", "subscription", "resize", "messagesPerSecondPerReplica", "500m")
	spec, err := s.GetMetricSpec(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, MetricPublishRate, spec.GetMetricSpecs()[0].GetMetricName())
	require.Equal(t, 0.5, spec.GetMetricSpecs()[0].GetTargetSizeFloat())
	require.EqualValues(t, 1, spec.GetMetricSpecs()[0].GetTargetSize(), "a target of 0 is refused by the API server")
	got, err := value(t, s, of)
	require.NoError(t, err)
	require.Equal(t, 0.25, got.GetMetricValueFloat())
	require.EqualValues(t, 1, got.GetMetricValue(), "what is there is never served as nothing")
}

func TestWrongMetadataIsReported(t *testing.T) {
	s := newEnvironment().server()
	wrong := ref("polcy", "resize")
	spec, err := s.GetMetricSpec(t.Context(), wrong)
	require.NoError(t, err, "KEDA would log an error of this call and no more")
	require.Len(t, spec.GetMetricSpecs(), 2)
	require.Equal(t, spec.GetMetricSpecs()[0], spec.GetMetricSpecs()[1], "KEDA tells the name of what it gets twice")
	require.Contains(t, spec.GetMetricSpecs()[0].GetMetricName(), "polcy cannot be set")
	require.Contains(t, spec.GetMetricSpecs()[0].GetMetricName(), "Correct the trigger")
	_, err = s.IsActive(t.Context(), wrong)
	require.Equal(t, codes.InvalidArgument, status.Code(statusError(err)))
	require.ErrorContains(t, err, "polcy")
	require.ErrorContains(t, err, "policy")
	_, err = s.GetMetrics(t.Context(),
		&pb.GetMetricsRequest{ScaledObjectRef: wrong, MetricName: spec.GetMetricSpecs()[0].GetMetricName()})
	require.Equal(t, codes.InvalidArgument, status.Code(statusError(err)))
	require.ErrorContains(t, err, "polcy")
	_, err = s.GetMetrics(t.Context(), nil)
	require.Equal(t, codes.InvalidArgument, status.Code(statusError(err)))
}

func TestAnotherMetricIsNotServed(t *testing.T) {
	env := newEnvironment()
	env.policies[policyKey()] = decidedPolicy(3, env.now)
	_, err := env.server().GetMetrics(t.Context(),
		&pb.GetMetricsRequest{ScaledObjectRef: ref("policy", "resize"), MetricName: "s0-pulsar-desired-replicas"})
	require.Equal(t, codes.InvalidArgument, status.Code(statusError(err)))
	require.ErrorContains(t, err, `no metric "s0-pulsar-desired-replicas": this trigger has pulsar-desired-replicas`)
}

func TestTheLastAnswerIsHeld(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	env.readings[topicSubject()] = reading(env.now)
	of := ref("topic", "orders", "subscription", "resize", "messagesPerReplica", "100")
	ask := func() (float64, error) {
		got, err := value(t, s, of)
		return got.GetMetricValueFloat(), err
	}
	isActive := func() (bool, error) {
		answer, err := s.IsActive(t.Context(), of)
		return answer.GetResult(), err
	}

	env.unread = errBrokerDown
	_, err := ask()
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)), "nothing is known yet")
	require.Empty(t, env.log.all(), "nothing has changed")

	env.unread = nil
	got, err := ask()
	require.NoError(t, err)
	require.Equal(t, 250.0, got)

	env.unread = errBrokerDown
	for range 59 {
		env.pass(time.Minute)
		got, err = ask()
		require.NoError(t, err)
		require.Equal(t, 250.0, got)
		is, err := isActive()
		require.NoError(t, err)
		require.True(t, is)
	}
	require.Equal(t, 1, s.evaluator.last.held())
	require.Len(t, env.log.all(), 1, "once, not each time")
	require.Contains(t, env.log.all()[0], "holding replicas")

	env.pass(time.Minute)
	_, err = ask()
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)))
	require.ErrorContains(t, err, "spec.fallback of the ScaledObject")
	require.ErrorContains(t, err, errBrokerDown.Error())
	_, err = isActive()
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)))
	require.Zero(t, s.evaluator.last.held())
	require.Len(t, env.log.all(), 2)
	require.Contains(t, env.log.all()[1], "unknown for too long")

	env.unread = nil
	_, err = ask()
	require.NoError(t, err)
	require.Len(t, env.log.all(), 3)
	require.Contains(t, env.log.all()[2], "known again")
}

func TestADecisionIsHeldByItsStatus(t *testing.T) {
	env := newEnvironment()
	of := ref("policy", "resize")
	began := env.now.Add(-59 * time.Minute)
	env.policies[policyKey()] = heldPolicy(decidedPolicy(7, began), began)
	s := env.server() // just started, without an earlier time
	got, err := value(t, s, of)
	require.NoError(t, err)
	require.Equal(t, 7.0, got.GetMetricValueFloat())
	require.Equal(t, 1, s.evaluator.last.held())

	env.pass(time.Minute)
	_, err = value(t, s, of)
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)), "the bound begins with the outage")
	require.ErrorContains(t, err, "spec.fallback")
}

func TestADecisionIsHeldWithoutADecisionMaker(t *testing.T) {
	env := newEnvironment()
	of := ref("policy", "resize")
	env.policies[policyKey()] = decidedPolicy(7, env.now)
	s := env.server()
	env.dead = errBrokerDown
	for range 60 {
		got, err := value(t, s, of)
		require.NoError(t, err)
		require.Equal(t, 7.0, got.GetMetricValueFloat())
		env.pass(time.Minute)
	}
	_, err := value(t, s, of)
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)))
	env.dead = nil
	_, err = value(t, s, of)
	require.NoError(t, err)
}

func TestTheSpecDoesNotFailOnceItWorked(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	of := ref("policy", "resize", "strategy", "BacklogPerReplica")
	_, err := s.GetMetricSpec(t.Context(), of)
	require.Equal(t, codes.NotFound, status.Code(statusError(err)), "the threshold is unknown")
	env.policies[policyKey()] = withStrategies()
	before, err := s.GetMetricSpec(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, 500.0, before.GetMetricSpecs()[0].GetTargetSizeFloat())
	for name, gone := range map[string]func(){
		"the policy":   func() { delete(env.policies, policyKey()) },
		"the strategy": func() { env.policies[policyKey()] = decidedPolicy(1, env.now) },
	} {
		gone()
		after, err := s.GetMetricSpec(t.Context(), of)
		require.NoError(t, err, name)
		require.Equal(t, before.String(), after.String(), name)
	}
	for _, form := range [][]string{
		{"policy", "resize"},
		{"topic", "orders", "subscription", "resize"},
		{"target", "Function/resize", "messagesPerReplica", "5"},
	} {
		_, err := newEnvironment().server().GetMetricSpec(t.Context(), ref(form...))
		require.NoError(t, err, "metadata alone say it")
	}
}

func TestEachReasonHasACode(t *testing.T) {
	want := map[response.Reason]codes.Code{
		response.NotFound: codes.NotFound, response.Invalid: codes.InvalidArgument,
		response.Unsupported: codes.FailedPrecondition, response.Unknown: codes.Unavailable,
		response.TooSlow: codes.DeadlineExceeded, response.Busy: codes.ResourceExhausted,
		response.Canceled: codes.Canceled, response.Internal: codes.Internal,
	}
	require.Len(t, want, len(response.Reasons()))
	for reason, code := range want {
		require.Equal(t, code, status.Code(statusError(response.Errorf(reason, "why"))), reason)
	}
	require.Equal(t, codes.Internal, status.Code(statusError(errBrokerDown)), "a bug")
	require.NoError(t, statusError(nil))
	canceled := status.Error(codes.Canceled, "of gRPC itself")
	require.Equal(t, canceled, statusError(canceled))
}

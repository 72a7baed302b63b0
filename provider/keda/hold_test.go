// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"fmt"
	"testing"
	"time"
	"unique"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestLossOfSignalNeverLowersReplicas(t *testing.T) {
	idle := func(at time.Time) backlog.Reading {
		r := reading(at)
		r.Ready, r.LeastReady, r.Unacked, r.DeliveryRate = backlog.Known(
			0), backlog.Known(0), backlog.Known(0), backlog.Known(0)
		return r
	}
	for name, test := range map[string]struct {
		last     backlog.Reading
		replicas *int32
		value    float64
		active   bool
		code     codes.Code
	}{
		"idle at the last poll, six replicas": {
			last: idle(noon()), replicas: new(int32(6)),
			value: 600, active: true,
		},
		"little to do at the last poll, six replicas": {
			last: reading(noon()), replicas: new(int32(6)),
			value: 600, active: true,
		},
		"much to do at the last poll, two replicas": {
			last: reading(noon()), replicas: new(int32(2)),
			value: 250, active: true,
		},
		"idle at the last poll, no replicas": {
			last: idle(noon()), replicas: new(int32(0)), value: 0,
			active: false,
		},
		"idle at the last poll, replicas unknown":       {last: idle(noon()), code: codes.Unavailable},
		"work to do at the last poll, replicas unknown": {last: reading(noon()), value: 250, active: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment()
			s := env.server()
			env.readings[topicSubject()] = test.last
			of := ref("topic", "orders", "subscription", "resize", "messagesPerReplica", "100")
			_, err := value(t, s, of)
			require.NoError(t, err)
			env.unread = errBrokerDown
			if test.replicas != nil {
				env.replicas[scaledObject()] = *test.replicas
			}
			got, err := value(t, s, of)
			require.Equal(t, test.code, status.Code(statusError(err)), "%v", err)
			is, err := s.IsActive(t.Context(), of)
			require.Equal(t, test.code, status.Code(statusError(err)), "%v", err)
			require.Equal(t, test.value, got.GetMetricValueFloat())
			require.Equal(t, test.active, is.GetResult())
		})
	}
}

// TestAHeldTriggerHasTheThresholdThatKEDAIsTold: with an earlier one the replicas to keep would be too few.
func TestAHeldTriggerHasTheThresholdThatKEDAIsTold(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	env.policies[policyKey()] = withStrategies()
	env.readings[Subject{Namespace: inNamespace, Policy: "resize"}] = reading(env.now)
	env.replicas[scaledObject()] = 6
	of := ref("policy", "resize", "strategy", "BacklogPerReplica")
	_, err := value(t, s, of)
	require.NoError(t, err)

	p := withStrategies()
	p.Spec.Strategies[1].BacklogPerReplica.Messages = 5000
	env.change(func() { env.unread = errBrokerDown; env.policies[policyKey()] = p })
	spec, err := s.GetMetricSpec(t.Context(), of)
	require.NoError(t, err)
	require.Equal(t, 5000.0, spec.GetMetricSpecs()[0].GetTargetSizeFloat())
	got, err := value(t, s, of)
	require.NoError(t, err)
	require.Equal(t, 6*5000.0, got.GetMetricValueFloat())
}

func TestRunningReplicasAreHeldBeforeTheFirstSample(t *testing.T) {
	const held = codes.OK
	for name, test := range map[string]struct {
		replicas *int32
		unread   error
		later    func(env *environment)
		code     codes.Code
		value    float64
	}{
		"Pulsar has not responded yet": {replicas: new(int32(3)), code: held, value: 300},
		"Pulsar does not respond":      {replicas: new(int32(3)), unread: errBrokerDown, code: held, value: 300},
		"no replicas run":              {replicas: new(int32(0)), code: codes.Unavailable},
		"the replicas are unknown":     {code: codes.Unavailable},
		"the trigger is misconfigured": {new(int32(3)), backlog.ErrFunctionNotFound, nil, codes.NotFound, 0},
		"a user stopped the target meanwhile": {
			new(int32(3)), nil, func(env *environment) { env.replicas[scaledObject()] = 0 }, codes.Unavailable, 0,
		},
		"a user added replicas meanwhile": {
			new(int32(3)), nil, func(env *environment) { env.replicas[scaledObject()] = 5 }, held, 500,
		},
		"the first response arrived": {
			new(int32(3)), nil, func(env *environment) { env.readings[topicSubject()] = reading(env.now) }, held, 250,
		},
		"it is held for almost an hour": {
			new(int32(3)), nil, func(env *environment) { env.pass(time.Hour - time.Second) }, held, 300,
		},
		"it is held for an hour": {
			new(int32(3)), nil, func(env *environment) { env.pass(time.Hour) }, codes.Unavailable, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment()
			s := env.server()
			env.unread = test.unread
			if test.replicas != nil {
				env.replicas[scaledObject()] = *test.replicas
			}
			of := ref("topic", "orders", "subscription", "resize", "messagesPerReplica", "100")
			if test.later != nil {
				got, err := value(t, s, of)
				require.NoError(t, err)
				require.Equal(t, 300.0, got.GetMetricValueFloat())
				require.Equal(t, 1, s.evaluator.last.held())
				test.later(env)
			}
			got, err := value(t, s, of)
			require.Equal(t, test.code, status.Code(statusError(err)), "%v", err)
			is, err := s.IsActive(t.Context(), of)
			require.Equal(t, test.code, status.Code(statusError(err)), "%v", err)
			require.Equal(t, test.value, got.GetMetricValueFloat())
			require.Equal(t, test.code == held, is.GetResult())
			if test.code != held {
				require.Zero(t, s.evaluator.last.held(), "an error is served")
			}
		})
	}
}

// TestReplicasStayForAsLongAsAPolicyIsPaused: on an error KEDA would scale to zero once it is held no longer.
func TestReplicasStayForAsLongAsAPolicyIsPaused(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	of := ref("policy", "resize")
	paused := decidedPolicy(0, env.now)
	paused.Status.DesiredReplicas, paused.Status.Decision = nil, nil
	paused.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPaused,
	}}
	env.policies[policyKey()] = paused
	for _, replicas := range []int32{6, 2, 0} {
		env.replicas[scaledObject()] = replicas
		env.pass(3 * time.Hour)
		got, err := value(t, s, of)
		require.NoError(t, err)
		require.Equal(t, float64(replicas), got.GetMetricValueFloat())
		is, err := s.IsActive(t.Context(), of)
		require.NoError(t, err)
		require.Equal(t, replicas > 0, is.GetResult())
	}
	delete(env.replicas, scaledObject())
	s = env.server()
	_, err := value(t, s, of)
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)), "the replicas are unknown")
}

func TestASampleIsHeldForTwoMinutesAfterAMistake(t *testing.T) {
	for name, test := range map[string]struct {
		trigger []string
		err     error
		code    codes.Code
		says    string
	}{
		"a deleted policy": {
			[]string{"policy", "resize"},
			nil, codes.NotFound,
			`AutoscalingPolicy "resize" in namespace "media" not found: create it`,
		},
		"a removed connection": {
			[]string{"topic", "orders", "subscription", "resize", "messagesPerReplica", "100"},
			backlog.ErrUnsupported, codes.FailedPrecondition, "not supported",
		},
		"a removed function": {
			[]string{"topic", "orders", "subscription", "resize", "messagesPerReplica", "100"},
			backlog.ErrFunctionNotFound, codes.NotFound,
			"function not found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment()
			s := env.server()
			env.policies[policyKey()] = decidedPolicy(3, env.now)
			env.readings[topicSubject()] = reading(env.now)
			of := ref(test.trigger...)
			_, err := value(t, s, of)
			require.NoError(t, err)

			wrong := func() { delete(env.policies, policyKey()); env.unread = test.err }
			right := func() { env.policies[policyKey()] = decidedPolicy(3, env.now); env.unread = nil }
			wrong()
			for range 2 {
				_, err = value(t, s, of)
				require.NoError(t, err, "it may be recreated")
				env.pass(misconfiguredFor - time.Second)
			}
			_, err = value(t, s, of)
			require.Equal(t, test.code, status.Code(statusError(err)))
			require.ErrorContains(t, err, test.says)
			_, err = s.IsActive(t.Context(), of)
			require.Equal(t, test.code, status.Code(statusError(err)), "not inactive, which KEDA would take to zero")
			_, err = s.GetMetricSpec(t.Context(), of)
			require.NoError(t, err)
			require.Equal(t, 0, s.evaluator.last.held())
			lines := env.log.all()
			require.Len(t, lines, 2)
			require.Contains(t, lines[1], "trigger names a missing object")

			right()
			_, err = value(t, s, of)
			require.NoError(t, err)
			wrong()
			_, err = value(t, s, of)
			require.NoError(t, err, "the time starts again")
		})
	}
}

func TestAMistakeBetweenOutagesDoesNotEndTheHold(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	env.readings[topicSubject()] = reading(env.now)
	of := ref("topic", "orders", "subscription", "resize", "messagesPerReplica", "100")
	_, err := value(t, s, of)
	require.NoError(t, err)
	for range 10 {
		for _, env.unread = range []error{backlog.ErrFunctionNotFound, errBrokerDown} {
			env.pass(misconfiguredFor - time.Second)
			_, err := value(t, s, of)
			require.NoError(t, err)
		}
	}
}

// agedError is an error with its time.
type agedError struct {
	error
	since time.Time
}

func (d agedError) Since() time.Time { return d.since }

func TestADeadDecisionMakerIsAsOldAsItsLease(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	env.policies[policyKey()] = decidedPolicy(3, env.now)
	of := ref("policy", "resize")
	env.dead = agedError{errors.New("no decision maker"), env.now.Add(-59 * time.Minute)}
	_, err := value(t, s, of)
	require.NoError(t, err)
	env.pass(time.Minute)
	_, err = value(t, s, of)
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)))
	require.ErrorContains(t, err, "spec.fallback")
}

// TestAHoldBeginsWhenTheScalerKnewItLast: the measurement in the status may be minutes older.
func TestAHoldBeginsWhenTheScalerKnewItLast(t *testing.T) {
	env := newEnvironment()
	s := env.server()
	of := ref("policy", "resize")
	written := decidedPolicy(3, env.now)
	env.policies[policyKey()] = written
	env.pass(6 * time.Minute)
	_, err := value(t, s, of)
	require.NoError(t, err)
	env.policies[policyKey()] = heldPolicy(written, written.Status.Signals.MeasuredAt.Time)
	env.pass(time.Hour - time.Second)
	_, err = value(t, s, of)
	require.NoError(t, err)
	env.pass(time.Second)
	_, err = value(t, s, of)
	require.Equal(t, codes.Unavailable, status.Code(statusError(err)))
}

func TestAHeldDecisionNeverLowersReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		decided  int32
		replicas *int32
		value    float64
		active   bool
		code     codes.Code
	}{
		"fewer replicas than run":            {decided: 2, replicas: new(int32(6)), value: 6, active: true},
		"more replicas than run":             {decided: 7, replicas: new(int32(6)), value: 7, active: true},
		"zero while some run":                {decided: 0, replicas: new(int32(6)), value: 6, active: true},
		"zero while none runs":               {decided: 0, replicas: new(int32(0)), value: 0},
		"zero, and replicas unknown":         {decided: 0, code: codes.Unavailable},
		"some, and how many runs is unknown": {decided: 2, value: 2, active: true},
	} {
		for why, held := range map[string]func(env *environment, since time.Time){
			"it hangs": func(env *environment, since time.Time) {
				env.dead = agedError{errors.New("no decision since noon: it hangs"), since}
			},
			errBrokerDown.Error(): func(env *environment, since time.Time) {
				env.policies[policyKey()] = heldPolicy(env.policies[policyKey()], since)
			},
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				env := newEnvironment()
				s := env.server() // just started
				env.policies[policyKey()] = decidedPolicy(test.decided, env.now.Add(-time.Minute))
				held(env, env.now.Add(-time.Minute))
				if test.replicas != nil {
					env.replicas[scaledObject()] = *test.replicas
				}
				of := ref("policy", "resize")
				got, err := value(t, s, of)
				require.Equal(t, test.code, status.Code(statusError(err)), "%v", err)
				is, err := s.IsActive(t.Context(), of)
				require.Equal(t, test.code, status.Code(statusError(err)), "%v", err)
				require.Equal(t, test.value, got.GetMetricValueFloat())
				require.Equal(t, test.active, is.GetResult())
				if test.code == codes.OK {
					require.Contains(t, fmt.Sprint(env.log.all()), why, "a warning")
				}
			})
		}
	}
}

func TestAnOlderRefreshDoesNotOverwriteANewerOne(t *testing.T) {
	watched := newWatches(1)
	one, _, err := watched.add(Trigger{Strategy: v1alpha1.StrategyBacklogPerReplica}, time.Time{})
	require.NoError(t, err)
	older, newer := one.begin(), one.begin()
	one.publish(newer, noon(), func(v *view) { v.active = isActive })
	one.publish(older, noon(), func(v *view) { v.active = inactive })
	require.Equal(t, isActive, one.current().active)
}

func TestTriggersThatWereNeverKnownEvictNoOther(t *testing.T) {
	m := newLastSamples(time.Hour, 2, noon)
	known := Trigger{Object: scaledObject(), Subject: topicSubject(), Strategy: v1alpha1.StrategyBacklogPerReplica}
	m.resolve(known, Sample{Active: true}, nil, noon())
	for i := range 10 {
		madeUp := known
		madeUp.Threshold = float64(i + 1)
		require.Error(t, m.resolve(madeUp, Sample{}, errBrokerDown, noon()).err)
		_, err := m.resolveSpec(madeUp, Spec{}, errBrokerDown, noon())
		require.Error(t, err)
	}
	require.Len(t, m.samples.Values(), 1)
	require.True(t, m.resolve(known, Sample{}, errBrokerDown, noon()).sample.Active)
}

func TestLastAnswersAreBounded(t *testing.T) {
	now := noon()
	last := newLastSamples(time.Hour, 3, func() time.Time { return now })
	of := func(i int) Trigger { return Trigger{Subject: Subject{Policy: fmt.Sprint(i)}} }
	kept := func(i int) bool { _, found := last.samples.Get(unique.Make(of(i)), now); return found }
	for i := range 3 {
		last.resolve(of(i), Sample{Value: 1}, nil, now)
	}
	last.resolve(of(0), Sample{}, errBrokerDown, now) // requested again
	require.Equal(t, 1, last.held(), "which changes no order")
	last.resolve(of(3), Sample{}, nil, now)
	require.Len(t, last.samples.Values(), 3)
	require.False(t, kept(1), "it was requested least recently")
	require.True(t, kept(0))

	begun := now
	now = begun.Add(requestedWithin - 1)
	require.Equal(t, 1, last.held())
	now = begun.Add(requestedWithin)
	require.Len(t, last.samples.Values(), 3)
	require.Zero(t, last.held(), "it is not requested any more")
	now = begun.Add(time.Hour + 1)
	require.False(t, kept(0))
}

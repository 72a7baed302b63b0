// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// changed is a modified reading.
func changed(how func(r *backlog.Reading)) observed {
	r := reading(noon())
	how(&r)
	return observed{reading: r, replicas: 4}
}

// withStrategies is the policy with thresholds for all strategies.
func withStrategies() *v1alpha1.AutoscalingPolicy {
	p := decidedPolicy(3, noon())
	p.Spec.Strategies = []v1alpha1.Strategy{
		{Type: v1alpha1.StrategyCapacity},
		{Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 500}},
		{
			Type:           v1alpha1.StrategyRatePerReplica,
			RatePerReplica: &v1alpha1.RatePerReplica{MessagesPerSecond: resource.MustParse("2500m")},
		},
		{Type: v1alpha1.StrategyUtilization, Utilization: &v1alpha1.Utilization{TargetPercent: 70}},
	}
	return p
}

func TestSamples(t *testing.T) {
	decision := Trigger{Object: scaledObject(), Subject: Subject{Namespace: inNamespace, Policy: "resize"}}
	ofPolicy := func(strategy v1alpha1.StrategyType) Trigger {
		borrowing := decision
		borrowing.Strategy = strategy
		return borrowing
	}
	of := func(strategy v1alpha1.StrategyType, threshold float64) Trigger {
		return Trigger{Object: scaledObject(), Subject: topicSubject(), Strategy: strategy, Threshold: threshold}
	}
	backlogOf := of(v1alpha1.StrategyBacklogPerReplica, 100)
	patient := backlogOf
	patient.ActivationMessages = 250
	replicasSpec := Spec{MetricDesiredReplicas, 1}
	woken := decidedPolicy(7, noon())
	woken.Spec.Mode, woken.Status.SpecReplicas = v1alpha1.ModeAuto, new(int32)
	woken.Status.Actuator = &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorKEDA}
	woken.Status.Decision = &v1alpha1.Decision{Time: metav1.NewTime(noon())}
	readySpec := Spec{MetricReadyMessages, 100}
	partial := fixture.Partial(reading(noon()), backlog.ErrForbidden)
	for name, test := range map[string]struct {
		trigger  Trigger
		observed observed
		want     Sample
	}{
		"follows the decision of a policy": {
			decision, observed{policy: decidedPolicy(7, noon())}, Sample{Spec: replicasSpec, Value: 7, Active: true},
		},
		"is inactive while the controller wakes the target": {
			decision, observed{policy: woken, now: noon()}, Sample{Spec: replicasSpec, Value: 7},
		},
		"is active as soon as the target is woken": {
			decision, observed{policy: woken, now: noon(), replicas: 7}, Sample{Spec: replicasSpec, Value: 7, Active: true},
		},
		"is inactive when a policy decides for none": {
			decision, observed{policy: decidedPolicy(0, noon())}, Sample{Spec: replicasSpec},
		},
		"keeps the last decision while the backlog is unknown": {
			decision,
			observed{policy: heldPolicy(decidedPolicy(7, noon()), noon())},
			Sample{Spec: replicasSpec, Value: 7, Active: true, HeldSince: noon(), Held: errBrokerDown.Error()},
		},
		"keeps the last decision while no replica decides": {
			decision,
			observed{policy: decidedPolicy(7, noon()), old: errors.New("no decision maker"), oldSince: noon()},
			Sample{Spec: replicasSpec, Value: 7, Active: true, HeldSince: noon(), Held: "no decision maker"},
		},
		"counts from the earlier of two reasons to keep it": {
			decision,
			observed{
				policy: heldPolicy(decidedPolicy(7, noon()), noon()),
				old:    errors.New("no decision maker"), oldSince: noon().Add(-time.Minute),
			},
			Sample{Spec: replicasSpec, Value: 7, Active: true, HeldSince: noon().Add(-time.Minute), Held: "no decision maker"},
		},
		"serves ready messages": {
			backlogOf, changed(func(*backlog.Reading) {}), Sample{Spec: readySpec, Value: 250, Active: true},
		},
		"serves the publish rate": {
			of(v1alpha1.StrategyRatePerReplica,
				30), changed(func(*backlog.Reading) {}), Sample{Spec: Spec{MetricPublishRate, 30}, Value: 100, Active: true},
		},
		"serves how busy all replicas are together": {
			of(v1alpha1.StrategyUtilization, 70), changed(func(*backlog.Reading) {}), Sample{
				Spec:  Spec{MetricBusyPercent, 70},
				Value: 200, Active: true,
			},
		},
		"does not count other consumers as busy": {
			of(v1alpha1.StrategyUtilization, 70), changed(func(r *backlog.Reading) { r.Consumers = backlog.Known(6) }),
			Sample{Spec: Spec{MetricBusyPercent, 70}, Value: 200, Active: true},
		},
		"is 0 percent busy without replicas": {
			of(v1alpha1.StrategyUtilization, 70), observed{reading: backlog.Reading{
				Ready: backlog.Known(
					3), Consumers: backlog.Known(0), Instances: backlog.InstancesReading{Busy: backlog.Unknown(backlog.ErrNoData)},
			}}, Sample{Spec: Spec{MetricBusyPercent, 70}, Active: true},
		},
		"takes the threshold of a policy in messages": {
			ofPolicy(v1alpha1.StrategyBacklogPerReplica),
			observed{policy: withStrategies(), reading: reading(noon())},
			Sample{Spec: Spec{MetricReadyMessages, 500}, Value: 250, Active: true},
		},
		"takes the threshold of a policy in messages per second": {
			ofPolicy(v1alpha1.StrategyRatePerReplica),
			observed{policy: withStrategies(), reading: reading(noon())},
			Sample{Spec: Spec{MetricPublishRate, 2.5}, Value: 100, Active: true},
		},
		"takes the default of a policy's utilization": {
			ofPolicy(v1alpha1.StrategyUtilization),
			observed{policy: withStrategies(), reading: reading(noon()), replicas: 4},
			Sample{Spec: Spec{MetricBusyPercent, 70}, Value: 200, Active: true},
		},
		"adds replicas for the topics that are known": {
			of(v1alpha1.StrategyBacklogPerReplica, 100),
			observed{reading: partial, replicas: 2, now: noon()},
			Sample{Spec: readySpec, Value: 250, Active: true, HeldSince: noon(), Held: partial.Coverage.Err().Error()},
		},
		"requests one replica for the topics that are known": {
			of(v1alpha1.StrategyBacklogPerReplica, 100),
			observed{reading: fixture.Partial(reading(noon()), backlog.ErrForbidden)},
			Sample{Spec: readySpec, Value: 100, Active: true},
		},
		"is active while replicas hold messages without a backlog": {
			patient, changed(func(*backlog.Reading) {}), Sample{Spec: readySpec, Value: 250, Active: true},
		},
		"is active while messages are delayed, which Pulsar does not date without a consumer": {
			backlogOf, changed(func(r *backlog.Reading) {
				r.Unacked, r.Ready, r.DeliveryRate, r.Delayed = backlog.Known(
					0), backlog.Known(0), backlog.Known(0), backlog.Known(3)
			}), Sample{Spec: readySpec, Active: true},
		},
		"is active while messages are delivered and none is ready": {
			patient, changed(func(r *backlog.Reading) {
				r.Unacked, r.Ready = backlog.Known(0),
					backlog.Known(0)
			}), Sample{Spec: readySpec, Active: true},
		},
		"is inactive with too few ready and none processed": {
			patient, changed(func(r *backlog.Reading) { r.Unacked, r.DeliveryRate = backlog.Known(0), backlog.Known(0) }),
			Sample{Spec: readySpec, Value: 250},
		},
		"is inactive without a rate and without consumers": {
			patient, changed(func(r *backlog.Reading) {
				r.Unacked, r.DeliveryRate, r.Consumers = backlog.Known(0), backlog.Unknown(backlog.ErrNoRate), backlog.Known(0)
			}), Sample{Spec: readySpec, Value: 250},
		},
		"is active without a rate when enough are ready": {
			backlogOf, changed(func(r *backlog.Reading) {
				r.DeliveryRate = backlog.Unknown(
					backlog.ErrNoRate)
			}), Sample{Spec: readySpec, Value: 250, Active: true},
		},
		"requests a replica to recreate a lost subscription": {
			backlogOf, observed{noReading: fmt.Errorf("%w: resize", backlog.ErrSubscriptionNotFound)}, Sample{
				Spec:  readySpec,
				Value: 100, Active: true,
			},
		},
		"requests a replica to create one on a topic of its pattern": {
			backlogOf, observed{reading: fixture.Partial(backlog.Reading{}, backlog.ErrSubscriptionNotFound)}, Sample{
				Spec: readySpec, Value: 100, Active: true,
			},
		},
		"serves at most the largest exact number": {
			backlogOf, changed(func(r *backlog.Reading) { r.Ready = backlog.Known(1e300) }), Sample{
				Spec:  readySpec,
				Value: response.Largest, Active: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newSample(test.trigger, decided(test.observed))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestSamplesThatAreUnknown(t *testing.T) {
	decision := Trigger{Object: scaledObject(), Subject: Subject{Namespace: inNamespace, Policy: "resize"}}
	borrowing := decision
	borrowing.Strategy = v1alpha1.StrategyBacklogPerReplica
	of := func(strategy v1alpha1.StrategyType) Trigger {
		return Trigger{Object: scaledObject(), Subject: topicSubject(), Strategy: strategy, Threshold: 100}
	}
	notFound := apierrors.NewNotFound(v1alpha1.GroupResource(), "resize")
	undecidedPolicy := decidedPolicy(1, noon())
	undecidedPolicy.Status.DesiredReplicas = nil
	for name, test := range map[string]struct {
		trigger  Trigger
		observed observed
		reason   response.Reason
		says     string
	}{
		"a missing policy": {
			decision,
			observed{noPolicy: notFound},
			response.NotFound,
			`AutoscalingPolicy "resize" in namespace "media" not found`,
		},
		"policies that are not installed": {
			decision,
			observed{noPolicy: backlog.Errorf(backlog.ErrUnsupported, "no such kind")},
			response.Unsupported, "no such kind",
		},
		"policies that are being read": {decision, observed{noPolicy: backlog.ErrNoData}, response.Unknown, "no data yet"},
		"a policy that is new":         {decision, observed{policy: undecidedPolicy}, response.Unknown, "no decision yet"},
		"a threshold that the policy has not": {
			borrowing,
			observed{policy: decidedPolicy(1, noon())},
			response.Unsupported,
			`has no strategy BacklogPerReplica`,
		},
		"a missing object": {
			of(v1alpha1.StrategyRatePerReplica),
			observed{noReading: notFound},
			response.NotFound, "not found: create it",
		},
		"a broker that does not respond": {
			of(v1alpha1.StrategyRatePerReplica),
			observed{noReading: errBrokerDown},
			response.Unknown, errBrokerDown.Error(),
		},
		"a lost subscription of replicas that run": {
			of(v1alpha1.StrategyBacklogPerReplica),
			observed{
				noReading: backlog.ErrSubscriptionNotFound,
				replicas:  1,
			},
			response.Unknown, "subscription not found",
		},
		"a lost subscription of unknown replicas": {
			of(v1alpha1.StrategyBacklogPerReplica),
			observed{noReading: backlog.ErrSubscriptionNotFound, noReplicas: errBrokerDown},
			response.Unknown, "subscription not found",
		},
		"a subscription that was lost long ago": {
			of(v1alpha1.StrategyBacklogPerReplica),
			observed{noReading: fmt.Errorf("%w: %w", backlog.ErrStale, backlog.ErrSubscriptionNotFound)},
			response.Unknown, "stale",
		},
		"a backlog that is unknown": {
			of(v1alpha1.StrategyRatePerReplica),
			changed(func(r *backlog.Reading) { r.Ready = backlog.Unknown(backlog.ErrPartial) }),
			response.Unknown, "partial answer",
		},
		"a sum without some topics": {
			of(v1alpha1.StrategyBacklogPerReplica),
			observed{reading: fixture.Partial(reading(noon()), backlog.ErrForbidden), noReplicas: errBrokerDown},
			response.Unknown, "99 of 100 topics are known",
		},
		"a rate that needs another sample": {
			of(v1alpha1.StrategyRatePerReplica),
			changed(func(r *backlog.Reading) {
				r.PublishRate = backlog.Unknown(
					backlog.ErrNoRate)
			}), response.Unknown, "pulsar-publish-rate of subscription",
		},
		"whether those who consume get anything": {of(v1alpha1.StrategyBacklogPerReplica), changed(func(r *backlog.Reading) {
			r.Ready, r.Unacked, r.DeliveryRate = backlog.Known(0), backlog.Known(0), backlog.Measurement{}
		}), response.Unknown, "whether messages are delivered"},
		"how busy asynchronous functions are": {
			of(v1alpha1.StrategyUtilization),
			changed(func(r *backlog.Reading) { r.Instances.Asynchronous = true }), response.Unknown, "asynchronous",
		},
		"how busy instances are that are not requested": {
			of(v1alpha1.StrategyUtilization),
			changed(func(
				r *backlog.Reading,
			) {
				r.Instances.Busy = backlog.Unknown(backlog.ErrNotRequested)
			}), response.Unknown, "--instance-metrics",
		},
		"how busy instances are that do not respond": {
			of(v1alpha1.StrategyUtilization),
			changed(func(
				r *backlog.Reading,
			) {
				r.Instances.Busy = backlog.Unknown(errBrokerDown)
			}), response.Unknown, "if that persists",
		},
		"how busy replicas are that do not consume": {
			of(v1alpha1.StrategyUtilization),
			changed(func(r *backlog.Reading) { r.Consumers = backlog.Known(0) }), response.Unknown,
			"none of 4 replicas consumes",
		},
		"how many consume": {
			of(v1alpha1.StrategyUtilization),
			changed(func(r *backlog.Reading) { r.Consumers = backlog.Unknown(backlog.ErrNotRequested) }),
			response.Unknown, "not requested",
		},
		"a measurement that is not a number": {
			of(v1alpha1.StrategyRatePerReplica),
			changed(func(r *backlog.Reading) { r.PublishRate = backlog.Known(math.NaN()) }), response.Unknown, "not a number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newSample(test.trigger, decided(test.observed))
			require.Equal(t, test.reason, response.ReasonOf(err))
			require.ErrorContains(t, err, test.says)
			require.Zero(t, got, "nothing that could be taken for a number")
		})
	}
}

// decided adds the decision of the policy, as an evaluator does.
func decided(o observed) observed {
	if o.policy != nil {
		o.desired, o.noDesired = served.LastDesired(o.policy)
	}
	return o
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestScalingLimitedNamesTheBound(t *testing.T) {
	held := func(reason string) policy.Decision {
		return policy.Decision{Replicas: 3, Hold: &policy.Hold{Reason: reason, Message: "3.47 of 12/s"}}
	}
	for name, test := range map[string]struct {
		decision *policy.Decision
		unknown  error
		want     string
	}{
		"no limit":                   {&policy.Decision{Replicas: 3}, nil, "False/DesiredWithinRange"},
		"at maxReplicas":             {&policy.Decision{CappedBy: policy.CappedByMax}, nil, "True/TooManyReplicas"},
		"at minReplicas":             {&policy.Decision{CappedBy: policy.CappedByMin}, nil, "True/TooFewReplicas"},
		"at the partitions":          {&policy.Decision{CappedBy: policy.CappedByPartitions}, nil, "True/TooFewPartitions"},
		"a limit behind the replica": {new(held(policy.HoldIneffective)), nil, "True/ExternalLimit"},
		"a limit of dispatch":        {new(held(policy.HoldDispatchLimited)), nil, "True/ExternalLimit"},
		"a hold that is no limit":    {new(held(policy.HoldStabilizing)), nil, "False/DesiredWithinRange"},
		"an unknown backlog":         {&policy.Decision{Replicas: 3}, backlog.ErrUnreachable, "Unknown/NotChecked"},
		"no decision":                {nil, nil, "Unknown/NotChecked"},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			o.Unknown = test.unknown
			var d *decided
			if test.decision != nil {
				d = &decided{Decision: *test.decision, Reading: reading(100, 50)}
			}
			conditions := statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, d).Conditions
			c := meta.FindStatusCondition(conditions, v1alpha1.ConditionScalingLimited)
			require.Equal(t, test.want, string(c.Status)+"/"+c.Reason)
			require.NotContains(t, c.Message, "3.47", "a number that changes would have every status written")
			require.Equal(t, v1alpha1.ConditionReady, conditions[0].Type, "Ready comes first")
		})
	}
}

func TestMorePartitionsAreNoAdviceForAnExclusiveSubscription(t *testing.T) {
	for of, want := range map[backlog.SubscriptionType]string{
		backlog.Exclusive: "the one consumer of an Exclusive subscription", backlog.Failover: "partitions or segments",
	} {
		status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, outcome(t, 1), &decided{
			policy.Decision{Replicas: 1, CappedBy: policy.CappedByPartitions},
			policy.State{Type: policy.Type{Is: of}},
			reading(100, 50),
		})
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionScalingLimited)
		require.Equal(t, v1alpha1.ReasonTooFewPartitions, c.Reason)
		require.Contains(t, c.Message, want)
	}
}

func TestReadyReportsWhetherTheTargetFollows(t *testing.T) {
	for name, test := range map[string]struct {
		decision policy.Decision
		want     string
	}{
		"it follows":         {policy.Decision{Replicas: 3}, "the target follows the decisions"},
		"it is about to":     {policy.Decision{Replicas: 4}, "the target is about to follow a new decision"},
		"its replicas stay":  {policy.Decision{Replicas: 3, Hold: &policy.Hold{Reason: "Updating"}}, "are held (Updating)"},
		"a held other value": {policy.Decision{Replicas: 5, Hold: &policy.Hold{Reason: "Updating"}}, "are held (Updating)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			saying(&o, corev1.ConditionTrue, "ValidMetricFound", "")
			status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, &decided{test.decision, policy.State{}, reading(1, 1)})
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
			require.Equal(t, "True/Scaling", string(c.Status)+"/"+c.Reason)
			require.Contains(t, c.Message, test.want)
		})
	}
}

func TestRunningReplicasAreThoseThatRun(t *testing.T) {
	for name, test := range map[string]struct {
		pods     *policy.Pods
		reported *int32
		want     *int32
	}{
		"pods that run":               {&policy.Pods{Running: new(int32(2))}, new(int32(3)), new(int32(2))},
		"the target's status":         {nil, new(int32(3)), new(int32(3))},
		"unknown, which is not zero":  {nil, nil, nil},
		"pods of which it is unknown": {&policy.Pods{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			o.Pods, o.Target.Reported = test.pods, test.reported
			status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, nil)
			require.Equal(t, test.want, status.RunningReplicas)
			require.Equal(t, int32(3), *status.SpecReplicas)
		})
	}
}

func TestAnAmbiguousSelectorNamesTheOtherAutoscaler(t *testing.T) {
	w := world()
	ours := "media/" + plan.AutoscalerName("resize")
	for theirs, want := range map[string]string{
		"pods are controlled by multiple HPAs: [media/other " + ours +
			"]": "HorizontalPodAutoscaler media/other selects the same pods, which stops both: " +
			"delete it, or give its pods labels of their own",
		"no list":             "no list",
		"only [" + ours + "]": "only [" + ours + "]",
	} {
		w.Autoscaler = applied(t, w)
		w.Autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
			Type: autoscalingv2.ScalingActive, Status: "False", Reason: "AmbiguousSelector", Message: theirs,
		}}
		for _, c := range conditionsOf(nil, w) {
			if c.Type == v1alpha1.ConditionScalingActive {
				require.Equal(t, want, c.Message)
			}
		}
	}
}

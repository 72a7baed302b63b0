// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestTheSubscriptionIsComparedWithWhatTheBrokerReports(t *testing.T) {
	tests := map[string]struct {
		change  func(*plan.Observed)
		want    string
		message string
	}{
		"all is as the fields promise": {
			want:    "True/AsExpected",
			message: `subscription "public/default/resize" of type Failover`,
		},
		"the broker has not answered": {
			change: func(o *plan.Observed) { o.Reading, o.Unknown = nil, backlog.ErrNoData },
			want:   "Unknown/Pending",
		},
		"the broker answers no more": {
			change: func(o *plan.Observed) { o.Reading, o.Unknown = nil, backlog.ErrUnreachable }, want: "Unknown/Pending",
			message: "the broker's report is unknown, see condition BacklogKnown",
		},
		"no consumer has connected yet": {
			change: func(o *plan.Observed) { o.Reading.Type = backlog.NoType },
			want:   "Unknown/NoConsumerSeen",
		},
		"the type is unknown yet": {
			change: func(o *plan.Observed) { o.Reading.Type = "" },
			want:   "Unknown/NoConsumerSeen",
		},
		"another type": {
			change: func(o *plan.Observed) { o.Reading.Type = backlog.Shared }, want: "False/SubscriptionTypeDiffers",
			message: "of type Failover and the broker reports Shared: restart the replicas",
		},
		"another type on some topics": {
			change: func(o *plan.Observed) { o.Reading.OtherType = backlog.Shared }, want: "False/SubscriptionTypeDiffers",
			message: "of type Failover and the broker reports Failover on some topics or partitions and Shared on others",
		},
		"another function consumes": {
			change: func(o *plan.Observed) {
				o.Reading.Components = []string{"public/default/crop", "public/default/resize"}
			},
			want:    "False/SubscriptionShared",
			message: "is consumed by the function public/default/crop too",
		},
		"another function consumes beside that of a worker": {
			change: func(o *plan.Observed) {
				o.Reading.Components = []string{"public/default/crop", "public/default/resize"}
				o.Target.Ref.Kind = "StatefulSet"
			},
			want: "False/SubscriptionShared", message: "give each a subName (sourceSubscriptionName of a sink) of its own",
		},
		"another type than the function of a worker promises": {
			change: func(o *plan.Observed) { o.Reading.Type, o.Target.Ref.Kind = backlog.Shared, "StatefulSet" },
			want:   "False/SubscriptionTypeDiffers", message: "give the target a subName",
		},
		"another type than the policy names": {
			change: func(o *plan.Observed) { named(o); o.Reading.Type = backlog.Shared }, want: "False/SubscriptionTypeDiffers",
			message: "spec.subscription promises subscription \"public/default/resize\" of type Failover and the broker reports " +
				"Shared: restart the replicas if they run an older configuration or image, or correct spec.subscription",
		},
		"a function on the subscription that the policy names": {
			change: func(o *plan.Observed) { named(o); o.Target.Component = "" }, want: "False/SubscriptionShared",
			message: "is consumed by the function public/default/resize too, so each takes a part of one backlog and would be " +
				"scaled for all of it: have each subscribe under a name of its own",
		},
		"a window that never acknowledges": {
			change: func(o *plan.Observed) { o.Target.NeverAcknowledges = true }, want: "False/NeverAcknowledged",
			message: "set spec.windowConfig.processingGuarantees to ATLEAST_ONCE",
		},
		"a window of the function worker that never acknowledges": {
			change: func(o *plan.Observed) {
				o.Target.NeverAcknowledges, o.Target.Ref.Kind = true, "StatefulSet"
			},
			want: "False/NeverAcknowledged", message: "update the function with windowConfig.processingGuarantees ATLEAST_ONCE",
		},
		"a target that cannot be scaled": {
			change: func(o *plan.Observed) {
				o.Unfit = plan.TargetProblem(v1alpha1.ReasonTargetInvalid, "no topics")
				o.Violation = plan.Check(o.Subject, o.Autoscalers)
			},
			want: "Unknown/NotChecked",
		},
		"a target that does not exist": {
			change: func(o *plan.Observed) {
				o.Target = nil
				o.Violation = plan.Check(o.Subject, o.Autoscalers)
			},
			want: "Unknown/NotChecked",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := world()
			w.Autoscaler = applied(t, w)
			w.Target.SubscriptionType, w.Target.Component = backlog.Failover, "public/default/resize"
			o := w
			o.Reading = &backlog.Reading{Type: backlog.Failover, Components: []string{"public/default/resize"}}
			if test.change != nil {
				test.change(&o)
			}
			conditions := conditionsOf(nil, o)
			c := meta.FindStatusCondition(conditions, v1alpha1.ConditionSubscriptionVerified)
			require.Equal(t, test.want, string(c.Status)+"/"+c.Reason)
			require.Contains(t, c.Message, test.message)
			if o.Violation == nil && o.Unknown == nil {
				ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
				require.NotEqual(t, c.Reason, ready.Reason, "it warns, and stops nothing")
			}
		})
	}
}

// named makes the policy one that names the subscription.
func named(o *plan.Observed) {
	o.Policy = o.Policy.DeepCopy()
	o.Policy.Spec.Subscription = &v1alpha1.Subscription{Name: o.Target.Subscription.Name}
}

func TestOfManySharersSomeAreNamed(t *testing.T) {
	w := world()
	w.Target.SubscriptionType = backlog.Shared
	var components []string
	for i := range 1000 {
		components = append(components, "public/default/"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	w.Reading = &backlog.Reading{Type: backlog.Shared, Components: components}
	conditions := conditionsOf(nil, w)
	require.Less(t, len(meta.FindStatusCondition(conditions, v1alpha1.ConditionSubscriptionVerified).Message), 1024)
}

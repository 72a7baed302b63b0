// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

func TestDesiredReplicas(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.AutoscalingPolicy)
		want   int64
	}{
		"serves the desired replicas": {want: 7},
		"serves it in mode Recommend": {
			change: func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend }, want: 7,
		},
		"serves an older decision after the spec changed": {
			change: func(p *v1alpha1.AutoscalingPolicy) { p.Generation = 4 }, want: 7,
		},
		"follows a lower maxReplicas before the next decision": {
			change: func(p *v1alpha1.AutoscalingPolicy) { p.Generation, p.Spec.MaxReplicas = 4, 5 }, want: 5,
		},
		"follows a higher minReplicas before the next decision": {
			change: func(p *v1alpha1.AutoscalingPolicy) { p.Generation, p.Spec.MinReplicas = 4, new(int32(9)) }, want: 9,
		},
		"never serves less than no replica": {
			change: func(p *v1alpha1.AutoscalingPolicy) {
				p.Spec.MinReplicas, *p.Status.DesiredReplicas = new(int32), -3
			}, want: 0,
		},
		"serves it while BacklogKnown is Unknown": {
			change: func(p *v1alpha1.AutoscalingPolicy) {
				p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBacklogKnown, Status: metav1.ConditionUnknown}}
			}, want: 7,
		},
		"serves it while the target is missing, which the autoscaler sees itself": {
			change: func(p *v1alpha1.AutoscalingPolicy) {
				p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionTargetFound, Status: metav1.ConditionFalse}}
			}, want: 7,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestProvider(Config{Policies: fakePolicies{"orders": decidedPolicy(tt.change)}})
			value, err := c.GetMetricByName(t.Context(), orders(), info(v1alpha1.GroupResource(), served.MetricDesiredReplicas),
				labels.Everything())
			require.NoError(t, err)
			require.Equal(t, tt.want, value.Value.Value())
			require.Equal(t, measuredAt(), value.Timestamp.Time)
			require.Nil(t, value.WindowSeconds)
			require.Equal(t, "pulsar-autoscaler.io/v1alpha1 AutoscalingPolicy shop/orders", value.DescribedObject.APIVersion+" "+
				value.DescribedObject.Kind+" "+value.DescribedObject.Namespace+"/"+value.DescribedObject.Name)
		})
	}
}

func TestDesiredReplicasIsUnknown(t *testing.T) {
	condition := func(name, message string) func(*v1alpha1.AutoscalingPolicy) {
		return func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
				Type: name, Status: metav1.ConditionFalse, Reason: "SomeReason", Message: message,
			})
		}
	}
	undecided := func(p *v1alpha1.AutoscalingPolicy) { p.Status.DesiredReplicas = nil }
	tests := map[string]struct {
		changes []func(*v1alpha1.AutoscalingPolicy)
		dead    error
		want    string
	}{
		"while the backlog is unknown": {
			changes: []func(*v1alpha1.AutoscalingPolicy){condition(v1alpha1.ConditionBacklogKnown,
				"stale: last good answer is 61s old")},
			want: "stale: last good answer is 61s old",
		},
		"while the backlog is unknown without a message": {
			changes: []func(*v1alpha1.AutoscalingPolicy){condition(v1alpha1.ConditionBacklogKnown, "")},
			want:    "BacklogKnown is False: SomeReason",
		},
		"without a decision maker": {
			dead: errors.New("no decision maker: lease pulsar-autoscaler/adapter was last renewed 2m ago"),
			want: "no decision maker: lease pulsar-autoscaler/adapter was last renewed 2m ago",
		},
		"before the first decision": {
			changes: []func(*v1alpha1.AutoscalingPolicy){undecided},
			want:    "no decision yet: the policy is new, the first one needs two answers from Pulsar",
		},
		"before the first decision, for the target is missing": {
			changes: []func(*v1alpha1.AutoscalingPolicy){
				undecided, condition(v1alpha1.ConditionReady, "not ready"), condition(v1alpha1.ConditionTargetFound,
					"no Function orders"),
			},
			want: "no decision yet: no Function orders",
		},
		"in mode Paused": {
			changes: []func(*v1alpha1.AutoscalingPolicy){
				undecided,
				func(p *v1alpha1.AutoscalingPolicy) {
					p.Status.Conditions = []metav1.Condition{{
						Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPaused,
						Message: "mode is Paused: the backlog is measured, and nothing is decided or changed",
					}}
				},
			},
			want: "no decision yet: mode is Paused: the backlog is measured, and nothing is decided or changed",
		},
		"in mode Recommend while replicas are 0 by hand": {
			changes: []func(*v1alpha1.AutoscalingPolicy){undecided, func(p *v1alpha1.AutoscalingPolicy) {
				p.Spec.Mode = v1alpha1.ModeRecommend
				p.Status.Decision.Hold = &v1alpha1.Hold{Reason: policy.HoldSwitchedOff, Message: "replicas are 0"}
			}},
			want: "no decision yet: replicas are 0",
		},
		"without a time of measurement": {
			changes: []func(*v1alpha1.AutoscalingPolicy){func(p *v1alpha1.AutoscalingPolicy) {
				p.Status.Signals,
					p.Status.Decision = nil, nil
			}},
			want: "no decision yet: the status does not say when its signals were measured",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := decidedPolicy(func(p *v1alpha1.AutoscalingPolicy) {
				for _, change := range tt.changes {
					change(p)
				}
			})
			c := newTestProvider(Config{Policies: fakePolicies{"orders": p}, DecisionMaker: fakeDecisionMaker{dead: tt.dead}})
			_, err := c.GetMetricByName(t.Context(), orders(), info(v1alpha1.GroupResource(), served.MetricDesiredReplicas),
				labels.Everything())
			requireStatus(t, err, 503, tt.want)
		})
	}
}

func TestEachReasonHasAStatus(t *testing.T) {
	codes := map[response.Reason]int32{
		response.NotFound: 404, response.Invalid: 400, response.Unsupported: 503, response.Unknown: 503,
		response.TooSlow: 503, response.Busy: 503, response.Canceled: 503, response.Internal: 500,
	}
	require.Len(t, codes, len(response.Reasons()))
	for reason, code := range codes {
		requireStatus(t, statusError(response.Errorf(reason, "why")), code, "why")
	}
	requireStatus(t, statusError(errors.New("a bug")), 500, "a bug")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// problems are the results of checks that are not ok, by check.
func problems(list []checked) map[string]string {
	found := map[string]string{}
	for _, c := range list {
		if c.Result != resultOK {
			found[c.Check] = string(c.Result)
		}
	}
	return found
}

func TestTheStatusSaysWhichCheckFails(t *testing.T) {
	set := setCondition
	for name, test := range map[string]struct {
		changes []func(*v1alpha1.AutoscalingPolicy)
		want    map[string]string
	}{
		"all is well": {nil, map[string]string{}},
		"the target is missing": {
			[]func(*v1alpha1.AutoscalingPolicy){
				set("TargetFound", "False", "TargetNotFound", "create it"), set("Ready", "False", "TargetNotFound", "create it"),
				set("BacklogKnown", "Unknown", "NotChecked", "the target must be found first"),
			},
			map[string]string{
				"target": "error", "pulsar": "unknown", "credentials": "unknown", "topics": "unknown", "subscription": "unknown",
				"replicas": "unknown",
			},
		},
		"credentials are refused": {
			[]func(*v1alpha1.AutoscalingPolicy){set("BacklogKnown", "False", "CredentialsRefused", "expired")},
			map[string]string{"pulsar": "unknown", "credentials": "error", "topics": "unknown", "subscription": "unknown"},
		},
		"a topic is missing": {
			[]func(*v1alpha1.AutoscalingPolicy){set("BacklogKnown", "False", "TopicNotFound", "create it")},
			map[string]string{"topics": "error", "subscription": "unknown"},
		},
		"brokers refuse to report the first message": {
			[]func(*v1alpha1.AutoscalingPolicy){set("BacklogKnown", "True", "PushRefused", "grant consume")},
			map[string]string{"topics": "warning"},
		},
		"the subscription is missing": {
			[]func(*v1alpha1.AutoscalingPolicy){set("BacklogKnown", "False", "SubscriptionNotFound", "create it")},
			map[string]string{"subscription": "error"},
		},
		"the subscription is shared": {
			[]func(*v1alpha1.AutoscalingPolicy){set("SubscriptionVerified", "False", "SubscriptionShared", "another")},
			map[string]string{"subscription": "warning"},
		},
		"the first answer is under way": {
			[]func(*v1alpha1.AutoscalingPolicy){set("BacklogKnown", "Unknown", "NoDataYet", "wait")},
			map[string]string{"pulsar": "unknown", "credentials": "unknown", "topics": "unknown", "subscription": "unknown"},
		},
		"a scale restarts replicas": {
			[]func(*v1alpha1.AutoscalingPolicy){set("ScalesWithoutRestart", "False", "PreciseParallelism", "unset it")},
			map[string]string{"restarts": "warning"},
		},
		"another autoscaler scales the target": {
			[]func(*v1alpha1.AutoscalingPolicy){set("AutoscalerApplied", "False", "ConflictingAutoscaler", "delete it")},
			map[string]string{"autoscalers": "error"},
		},
		"another autoscaler would conflict in mode Auto": {
			[]func(*v1alpha1.AutoscalingPolicy){
				set("AutoscalerApplied", "True", "ConflictingAutoscaler", "in mode Auto it would not scale: delete it"),
				func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend },
			},
			map[string]string{"autoscalers": "warning"},
		},
		"the user set 0 replicas in mode Recommend": {
			[]func(*v1alpha1.AutoscalingPolicy){
				hold("SwitchedOff", "replicas are 0"), set("AutoscalerApplied", "True", "RecommendOnly", ""),
				func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend },
			},
			map[string]string{"replicas": "warning"},
		},
		"replicas could not be written": {
			[]func(*v1alpha1.AutoscalingPolicy){set("AutoscalerApplied", "Unknown", "ScaleFailed", "grant it")},
			map[string]string{"autoscalers": "error"},
		},
		"replicas do not start": {
			[]func(*v1alpha1.AutoscalingPolicy){set("Ready", "False", "ReplicasNotStarting", "pods crash")},
			map[string]string{"replicas": "error"},
		},
		"maxReplicas limits": {
			[]func(*v1alpha1.AutoscalingPolicy){set("ScalingLimited", "True", "TooManyReplicas", "more are needed")},
			map[string]string{"limits": "warning"},
		},
		"minReplicas limits": {
			[]func(*v1alpha1.AutoscalingPolicy){set("ScalingLimited", "True", "TooFewReplicas", "fewer are needed")},
			map[string]string{},
		},
		"partitions are fewer than maxReplicas": {
			[]func(*v1alpha1.AutoscalingPolicy){func(p *v1alpha1.AutoscalingPolicy) {
				p.Status.Signals.UsefulReplicas = new(p.Spec.MaxReplicas - 1)
			}},
			map[string]string{"partitions": "warning"},
		},
		"no consumer has connected": {
			[]func(*v1alpha1.AutoscalingPolicy){set("SubscriptionVerified", "Unknown", "NoConsumerSeen", "none")},
			map[string]string{"partitions": "unknown", "subscription": "unknown"},
		},
		"replicas start too slowly": {
			[]func(*v1alpha1.AutoscalingPolicy){set("ObjectiveAchievable", "False", "ObjectiveTooShort", "set it to 60s")},
			map[string]string{"start time": "warning"},
		},
		"messages are late": {
			[]func(*v1alpha1.AutoscalingPolicy){set("ObjectiveMet", "False", "CatchingUp", "replicas drain the backlog")},
			map[string]string{"objective": "warning"},
		},
		"the status is of an older spec": {
			[]func(*v1alpha1.AutoscalingPolicy){func(p *v1alpha1.AutoscalingPolicy) { p.Generation = 2 }},
			map[string]string{"adapter": "warning"},
		},
		"the adapter cannot read a decision's input": {
			[]func(*v1alpha1.AutoscalingPolicy){set("Ready", "Unknown", "ReconcileFailed", "retrying")},
			map[string]string{"adapter": "error"},
		},
		"the policy is paused, and its topic is missing": {
			append(pausedConditions("mode is Paused"), set("BacklogKnown", "False", "TopicNotFound", "create it"),
				func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModePaused }),
			map[string]string{
				"adapter": "warning", "topics": "error", "subscription": "unknown", "limits": "unknown", "replicas": "unknown",
			},
		},
		"all policies are paused": {
			pausedConditions("all are paused"),
			map[string]string{"adapter": "warning", "limits": "unknown", "replicas": "unknown"},
		},
		"there is no status": {
			[]func(*v1alpha1.AutoscalingPolicy){func(p *v1alpha1.AutoscalingPolicy) {
				p.Status = v1alpha1.AutoscalingPolicyStatus{}
			}},
			map[string]string{"adapter": "error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := judgedPolicy(test.changes...)
			require.Equal(t, test.want, problems(statusCheck{&p, p.Spec.Mode}.checks()))
		})
	}
}

// pausedConditions are what the adapter writes while a policy is paused.
func pausedConditions(why string) []func(*v1alpha1.AutoscalingPolicy) {
	return []func(*v1alpha1.AutoscalingPolicy){
		setCondition("Ready", "True", "Paused", why), setCondition("ScalingLimited", "Unknown", "NotChecked", "no decision"),
		setCondition("AutoscalerApplied", "True", "Paused", "no HorizontalPodAutoscaler of the policy exists"),
	}
}

func TestTheFixOfAPausedPolicyIsWhatResumesIt(t *testing.T) {
	const resume = `all policies are paused ("incident 42"), and kubectl annotate resumes them`
	paused := func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModePaused }
	for name, test := range map[string]struct {
		changes []func(*v1alpha1.AutoscalingPolicy)
		want    string
	}{
		"its mode is Paused": {
			append(pausedConditions("mode is Paused"), paused),
			"mode is Paused; to resume this one, set mode to Recommend or Auto",
		},
		"all policies are paused": {pausedConditions(resume), resume},
	} {
		t.Run(name, func(t *testing.T) {
			p := judgedPolicy(test.changes...)
			list := statusCheck{&p, p.Spec.Mode}.checks()
			require.Equal(t, checked{"adapter", "warning", "Paused", test.want}, list[0])
			require.Contains(t, list, checked{
				"replicas", "unknown", "Paused", "nothing is decided while the policy is paused",
			})
		})
	}
}

func TestTheFixOfAnExternalLimitDependsOnTheHold(t *testing.T) {
	limited := setCondition("ScalingLimited", "True", "ExternalLimit", "no more messages")
	for name, test := range map[string]struct{ hold, want string }{
		"the function waits": {"ScalingIneffective", "find what the target waits for, such as a database"},
		"Pulsar holds messages back": {
			"DispatchLimited", "acknowledge messages in the function, or raise the limit of Pulsar",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := judgedPolicy(limited, hold(test.hold, "measured"))
			require.Equal(t, checked{"limits", "warning", "ExternalLimit", "no more messages: " + test.want},
				statusCheck{&p, p.Spec.Mode}.limits())
		})
	}
}

func TestATrialOfAPolicyInModeAutoHasNoErrorWhileAllArePaused(t *testing.T) {
	p := judgedPolicy(append(pausedConditions("all are paused"), func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.Mode = v1alpha1.ModeRecommend
	})...)
	require.Equal(t, map[string]string{"adapter": "warning", "limits": "unknown", "replicas": "unknown"},
		problems(statusCheck{&p, v1alpha1.ModeAuto}.checks()))
}

func TestATrialOfATargetThatIsSwitchedOffIsAnError(t *testing.T) {
	p := judgedPolicy(hold("SwitchedOff", "set replicas to 1 or more"))
	require.Equal(t, checked{"replicas", "error", "SwitchedOff", "set replicas to 1 or more"},
		statusCheck{&p, v1alpha1.ModeAuto}.replicas())
}

func TestTheFixOfTooManyReplicasDependsOnTheSubscriptionType(t *testing.T) {
	type policy = v1alpha1.AutoscalingPolicy
	for name, test := range map[string]struct {
		change func(*policy)
		want   string
	}{
		"a partition keeps a replica busy": {func(*policy) {}, "add partitions"},
		"the broker reports another type": {
			setCondition("SubscriptionVerified", "False", "SubscriptionTypeDiffers", "Exclusive"),
			"have the replicas subscribe with the type that is promised (condition SubscriptionVerified)",
		},
		"segments are split up to a limit": {
			func(p *policy) { p.Spec.Subscription = &v1alpha1.Subscription{Type: v1alpha1.SubscriptionStream} },
			"use QueueConsumers (type Shared)",
		},
		"one consumer connects": {
			func(p *policy) { p.Spec.Subscription = &v1alpha1.Subscription{Type: v1alpha1.SubscriptionExclusive} },
			"use Shared, Key_Shared or Failover",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := judgedPolicy(setCondition("ScalingLimited", "True", "TooFewPartitions", "more would be idle"), test.change)
			p.Status.Signals.UsefulReplicas, p.Status.Decision.CappedBy = new(int32(1)), "partitions"
			c := statusCheck{&p, p.Spec.Mode}
			require.Equal(t, "the subscription has messages for at most 1 replicas, and maxReplicas is 20: "+test.want+
				", or lower maxReplicas", c.partitions().Message)
			require.Equal(t, "more would be idle: "+test.want, c.limits().Message)
			require.Contains(t, flat(explained(p)), "partitions "+test.want)
		})
	}
}

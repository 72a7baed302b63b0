// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

var update = flag.Bool("update", false, "record statuses and write argocd-cm.yaml instead of comparing them")

// every is the interval at which the policies here are reconciled.
const every = 10 * time.Second

// observed returns a policy with 3 replicas, which are enough, and its HorizontalPodAutoscaler.
func observed(t *testing.T) plan.Observed {
	t.Helper()
	p := fixture.Policy()
	p.Spec.LatencyObjective.Duration = time.Minute
	p.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy))
	r := fixture.Reading(250, 50)
	o := plan.Observed{
		Subject: plan.Subject{
			Now: fixture.Noon(), Policy: p, Target: &plan.Target{
				Ref: p.Spec.ScaleTargetRef, Replicas: new(int32(3)), Reported: new(int32(3)),
				Subscription:     backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in"),
				SubscriptionType: backlog.Shared,
			},
		},
		Actuator: v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA, Reason: "the cluster supports it"},
		Measured: plan.Measured{Reading: &r, PollInterval: every},
	}
	o.Autoscaler = plan.HorizontalPodAutoscaler(p, o.Target)
	o.Autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound",
		Message: "the HPA was able to successfully calculate a replica count",
	}}
	return o
}

// reconciled returns the policy after reconciles for that long, and the observed state then.
func reconciled(o plan.Observed, h *report.History, d time.Duration) (*v1alpha1.AutoscalingPolicy, plan.Observed) {
	var state policy.State
	for end := o.Now.Add(d); !o.Now.After(end); o.Now = o.Now.Add(every) {
		if o.Reading != nil {
			o.Reading.At, o.Reading.ExactAt = o.Now, o.Now
		}
		o.Violation = plan.Check(o.Subject, o.Autoscalers)
		var decision *policy.Decision
		if o.Subscription() != nil {
			decided, after := policy.Decide(plan.Input(o), state)
			decision, state = &decided, after
		}
		*h = h.Decided(o, decision)
		o.Policy = o.Policy.DeepCopy()
		o.Policy.Status = report.Status(o, *h, decision, state, plan.Unwritten(o, plan.Actions{Violation: o.Violation}))
	}
	p := o.Policy.DeepCopy()
	p.Status.WorkingCheckpoint = "" // is not part of the API
	return p, o
}

// policies are recorded by the names of their files.
func policies(t *testing.T) map[string]client.Object {
	t.Helper()
	after := func(d time.Duration, changes ...func(*plan.Observed)) client.Object {
		o := observed(t)
		for _, change := range changes {
			change(&o)
		}
		p, _ := reconciled(o, &report.History{}, d)
		return p
	}
	absent := func(o *plan.Observed) { o.Target, o.Reading = nil, nil }
	unanswered := func(o *plan.Observed) { o.Reading, o.Unknown = nil, backlog.ErrUnreachable }
	limited := func(o *plan.Observed) {
		*o.Reading = fixture.Reading(1_000_000, 50)
		o.Target.Replicas, o.Target.Reported = new(int32(20)), new(int32(20))
	}
	mode := func(m v1alpha1.Mode) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Policy.Spec.Mode = m }
	}
	var history report.History
	edited, later := reconciled(observed(t), &history, time.Minute)
	edited.Generation++
	absent(&later)
	deleted, _ := reconciled(later, &history, 2*time.Minute)
	return map[string]client.Object{
		"new":              withDefaults(t, after(0)),
		"scaling":          after(time.Minute),
		"objective-missed": after(2*time.Minute, limited),
		"spec-changed":     edited,
		"recommending":     after(time.Minute, mode(v1alpha1.ModeRecommend)),
		"paused":           after(time.Minute, mode(v1alpha1.ModePaused)),
		"pulsar-down":      after(time.Hour, unanswered),
		"target-not-yet":   after(30*time.Second, absent),
		"target-missing":   after(2*time.Minute, absent),
		"target-deleted":   deleted,
		"replicas-pending": after(20*time.Minute, func(o *plan.Observed) {
			o.Pods = &policy.Pods{Ready: 1, Unready: 3, UnreadySince: o.Now}
		}),
		"target-of-a-mesh": after(2*time.Minute, func(o *plan.Observed) { o.Target.MeshOwner = "etl" }),
		"other-autoscaler": after(2*time.Minute, func(o *plan.Observed) {
			o.Conflicting = []plan.ConflictingAutoscaler{{
				Kind: "HorizontalPodAutoscaler", Name: "cpu", TargetKind: "Function", TargetName: "resize",
			}}
		}),
	}
}

// policySets are recorded by the names of their files.
func policySets(t *testing.T) map[string]client.Object {
	t.Helper()
	after := func(d time.Duration, ready ...metav1.ConditionStatus) client.Object {
		policySet := fixture.PolicySet("media")
		policySet.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicySet))
		neighbors, objects := members(policySet, ready)
		for now := fixture.Noon(); !now.After(fixture.Noon().Add(d)); now = now.Add(every) {
			policySet.Status = set.Status(policySet.Status, set.Outcome{
				Now: now, Observed: set.Observe(policySet, neighbors, objects),
			})
		}
		return policySet
	}
	return map[string]client.Object{
		"new":             withDefaults(t, after(0)),
		"all-ready":       after(time.Minute, metav1.ConditionTrue, metav1.ConditionTrue),
		"one-not-ready":   after(time.Hour, metav1.ConditionTrue, metav1.ConditionFalse),
		"nothing-yet":     after(30 * time.Second),
		"nothing-matches": after(2 * time.Minute),
	}
}

// members returns Functions that a set selects, and its policies for them, with their condition Ready.
func members(policySet *v1alpha1.AutoscalingPolicySet, ready []metav1.ConditionStatus) (
	neighbors set.Neighbors, objects []set.Selectable,
) {
	for i, status := range ready {
		p := fixture.Policy()
		p.Spec.ScaleTargetRef.Name = fmt.Sprintf("resize-%d", i)
		p.Name = set.PolicyName(policySet.Name, p.Spec.ScaleTargetRef)
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(policySet, policySet.GroupVersionKind())}
		p.Status.ObservedGeneration = p.Generation
		p.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: status, Reason: v1alpha1.ReasonScaling, Message: "as recorded",
		}}
		neighbors.Policies = append(neighbors.Policies, *p)
		objects = append(objects, set.Selectable{Ref: p.Spec.ScaleTargetRef, Labels: policySet.Spec.Selector.MatchLabels})
	}
	return neighbors, objects
}

// withDefaults returns the object as the API server returns it before the adapter reads it.
func withDefaults(t *testing.T, object client.Object) client.Object {
	t.Helper()
	plural := map[string]string{
		v1alpha1.KindAutoscalingPolicy:    "autoscalingpolicies",
		v1alpha1.KindAutoscalingPolicySet: "autoscalingpolicysets",
	}[object.GetObjectKind().GroupVersionKind().Kind]
	text, err := os.ReadFile(filepath.Join(root, "deploy", "crd", v1alpha1.Group+"_"+plural+".yaml"))
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(text, &crd))
	initial := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Default
	require.NotNil(t, initial)
	switch o := object.(type) {
	case *v1alpha1.AutoscalingPolicy:
		o.Status = v1alpha1.AutoscalingPolicyStatus{}
		require.NoError(t, yaml.UnmarshalStrict(initial.Raw, &o.Status))
	case *v1alpha1.AutoscalingPolicySet:
		o.Status = v1alpha1.AutoscalingPolicySetStatus{}
		require.NoError(t, yaml.UnmarshalStrict(initial.Raw, &o.Status))
	}
	return object
}

// TestTheRecordedStatusesAreThoseOfTheController compares each file with the result of the controller's code.
func TestTheRecordedStatusesAreThoseOfTheController(t *testing.T) {
	for kind, objects := range map[string]map[string]client.Object{
		v1alpha1.KindAutoscalingPolicy: policies(t), v1alpha1.KindAutoscalingPolicySet: policySets(t),
	} {
		folder := filepath.Join(healthChecks, kind, "testdata")
		var names []string
		for name, object := range objects {
			text, err := yaml.Marshal(object)
			require.NoError(t, err)
			path := filepath.Join(folder, name+".yaml")
			if *update {
				require.NoError(t, os.MkdirAll(folder, 0o750))
				require.NoError(t, os.WriteFile(path, text, 0o600))
			}
			recorded, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(recorded), string(text), "run go test ./test/gitops -update for %s", path)
			names = append(names, path)
		}
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		require.NoError(t, err)
		slices.Sort(names)
		require.Equal(t, names, files, "each file is recorded here")
	}
}

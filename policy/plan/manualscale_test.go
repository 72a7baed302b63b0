// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func byKubectl() plan.Writer {
	return plan.Writer{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale"}
}

func byHPA() plan.Writer {
	return plan.Writer{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale",
	}
}

// changed is a target with this number of replicas, whose policy saw and decided 4 before.
func changed(replicas int32) plan.Observed {
	p := &v1alpha1.AutoscalingPolicy{Spec: spec()}
	p.Status.SpecReplicas, p.Status.DesiredReplicas = new(int32(4)), new(int32(4))
	r := reading(0, 10)
	return plan.Observed{
		Subject:  plan.Subject{Now: noon(), Policy: p, Target: &plan.Target{Ref: p.Spec.ScaleTargetRef, Replicas: &replicas}},
		Measured: plan.Measured{Reading: &r},
	}
}

func TestTheWriterIsSoughtWhereAChangeWasNotDecided(t *testing.T) {
	tests := map[string]struct {
		change func(*plan.Observed)
		want   bool
	}{
		"replicas that changed":        {func(*plan.Observed) {}, true},
		"replicas that did not":        {func(o *plan.Observed) { o.Target.Replicas = new(int32(4)) }, false},
		"the decided number":           {func(o *plan.Observed) { o.Policy.Status.DesiredReplicas = new(int32(7)) }, false},
		"no decision yet":              {func(o *plan.Observed) { o.Policy.Status.DesiredReplicas = nil }, true},
		"the first time they are seen": {func(o *plan.Observed) { o.Policy.Status.SpecReplicas = nil }, false},
		"mode Recommend":               {func(o *plan.Observed) { o.Policy.Spec.Mode = v1alpha1.ModeRecommend }, false},
		"mode Paused":                  {func(o *plan.Observed) { o.Policy.Spec.Mode = v1alpha1.ModePaused }, false},
		"something to fix first":       {func(o *plan.Observed) { o.Violation = &plan.Violation{} }, false},
		"a target that does not exist": {func(o *plan.Observed) { o.Target = nil }, false},
		"a target without replicas":    {func(o *plan.Observed) { o.Target.Replicas = nil }, false},
		"a function of a worker":       {func(o *plan.Observed) { o.Target.Scaling = plan.ByWorker }, false},
		"before the first answer":      {func(o *plan.Observed) { o.Unknown, o.Reading = backlog.ErrNoData, nil }, false},
		"while the backlog is unknown": {func(o *plan.Observed) { o.Unknown, o.Reading = backlog.ErrUnreachable, nil }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := changed(7)
			test.change(&o)
			require.Equal(t, test.want, plan.NeedsWriter(o))
			require.Nil(t, plan.DetectManualScale(o), "no writer is known yet")
		})
	}
}

func TestAManualScaleIsNamedUnlessItIsOurs(t *testing.T) {
	kubectl, hpa := byKubectl(), byHPA()
	keda := plan.Writer{Manager: "keda", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale"}
	argo := plan.Writer{
		Manager: "argocd-controller", Operation: metav1.ManagedFieldsOperationApply, At: noon().Add(-time.Second),
	}
	_, noWriter := plan.LastWriter(nil, []string{"spec", "replicas"})
	ours := &autoscalingv2.HorizontalPodAutoscaler{}
	tests := map[string]struct {
		lookup plan.WriterLookup
		change func(*plan.Observed)
		want   string
	}{
		"kubectl scale": {
			plan.WriterLookup{Writer: kubectl},
			func(*plan.Observed) {},
			"spec.replicas 4 -> 7 was written by kubectl scale (manager kubectl, Update, subresource scale)",
		},
		"GitOps": {
			plan.WriterLookup{Writer: argo},
			func(*plan.Observed) {},
			"spec.replicas 4 -> 7 was written by Argo CD (manager argocd-controller, Apply) at 2026-11-21T11:59:59Z: " +
				"let it ignore spec.replicas, or its next sync writes that number again",
		},
		"an unknown writer": {
			plan.WriterLookup{Failed: errors.New("the API server does not answer")},
			func(*plan.Observed) {},
			"spec.replicas 4 -> 7 was written by an unknown writer: the API server does not answer",
		},
		"a scale subresource that is set to 0": {
			plan.WriterLookup{Failed: noWriter},
			func(o *plan.Observed) { o.Target.Replicas = new(int32(0)) },
			"spec.replicas 4 -> 0 was written to the scale subresource, such as by kubectl scale: the API server does not " +
				"track who writes 0 to it",
		},
		"no writer of another number": {
			plan.WriterLookup{Failed: noWriter},
			func(*plan.Observed) {},
			"spec.replicas 4 -> 7 was written by an unknown writer: no field manager owns the field spec.replicas",
		},
		"a component of a FunctionMesh": {
			plan.WriterLookup{Writer: kubectl},
			func(o *plan.Observed) {
				o.Target.Scaling = plan.ByMesh
				o.Policy.Spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "resize"}
			},
			"spec.functions[resize].replicas 4 -> 7 was written by kubectl scale (manager kubectl, Update, subresource scale)",
		},
		"the controller": {plan.WriterLookup{Writer: plan.Writer{Manager: plan.FieldManager}}, func(*plan.Observed) {}, ""},
		"our autoscaler": {
			plan.WriterLookup{Writer: hpa}, func(o *plan.Observed) { o.Autoscaler = ours }, "",
		},
		"KEDA's autoscaler of our ScaledObject": {
			plan.WriterLookup{Writer: hpa}, func(o *plan.Observed) { o.KEDAAutoscaler = ours }, "",
		},
		"our autoscaler, which was deleted a moment ago": {
			plan.WriterLookup{Writer: hpa},
			func(o *plan.Observed) {
				o.Autoscaler = ours
				o.History = o.History.After(*o, plan.Actions{RemoveAutoscaler: true}, plan.Result{})
				o.Autoscaler = nil
			}, "",
		},
		"an autoscaler where we have none": {
			plan.WriterLookup{Writer: hpa}, func(*plan.Observed) {}, "spec.replicas 4 -> 7 was written by " +
				"a HorizontalPodAutoscaler (manager kube-controller-manager, Update, subresource scale)",
		},
		"KEDA without a ScaledObject of ours": {
			plan.WriterLookup{Writer: keda},
			func(*plan.Observed) {},
			"spec.replicas 4 -> 7 was written by KEDA (manager keda, Update, subresource scale)",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := changed(7)
			test.change(&o)
			o.Writer = &test.lookup
			manual := plan.DetectManualScale(o)
			if test.want == "" {
				require.Nil(t, manual)
				return
			}
			require.NotNil(t, manual)
			require.Equal(t, test.want, manual.String())
		})
	}
}

// sees is the history some seconds later with this number of replicas, and the named writer. The writer is looked up if
// it is sought.
func sees(h plan.History, seconds int, replicas, desired int32, writer plan.Writer) (plan.History, *plan.ManualScale) {
	o := changed(replicas)
	o.Now, o.History, o.Policy.Status.DesiredReplicas = noon().Add(time.Duration(seconds)*time.Second), h, &desired
	if plan.NeedsWriter(o) {
		o.Writer = &plan.WriterLookup{Writer: writer}
	}
	return h.Seen(o), plan.DetectManualScale(o)
}

func TestAChangeIsNamedOnce(t *testing.T) {
	h, manual := sees(plan.History{}, 0, 7, 4, byKubectl())
	require.NotNil(t, manual)
	for second := 1; second < 30; second++ {
		h, manual = sees(h, second, 7, 7, byKubectl())
		require.Nil(t, manual, "after %d s", second)
	}
	_, manual = sees(h, 30, 9, 7, byKubectl())
	require.Equal(t, int32(7), manual.From)
}

func TestChangesWithinTenSecondsAreNamedTogether(t *testing.T) {
	h, manual := sees(plan.History{}, 0, 7, 4, byKubectl())
	require.NotNil(t, manual)
	h, manual = sees(h, 1, 8, 7, byKubectl())
	require.Nil(t, manual)
	h, manual = sees(h, 4, 9, 8, byKubectl())
	require.Nil(t, manual)
	h, manual = sees(h, 9, 9, 9, byKubectl())
	require.Nil(t, manual, "the writer of the new decision is still to be named")
	h, manual = sees(h, 10, 9, 9, byKubectl())
	require.NotNil(t, manual)
	require.Equal(t, []int32{7, 9}, []int32{manual.From, manual.To})
	_, manual = sees(h, 25, 9, 9, byKubectl())
	require.Nil(t, manual)
}

func TestAChangeThatWentBackIsNotNamed(t *testing.T) {
	h, _ := sees(plan.History{}, 0, 7, 4, byKubectl())
	h, manual := sees(h, 1, 8, 7, byKubectl())
	require.Nil(t, manual)
	h, manual = sees(h, 5, 7, 7, byKubectl())
	require.Nil(t, manual)
	_, manual = sees(h, 30, 7, 7, byKubectl())
	require.Nil(t, manual)
}

func TestOurOwnWriteIsNotLookedUpAgain(t *testing.T) {
	controller := plan.Writer{Manager: plan.FieldManager}
	h, manual := sees(plan.History{}, 0, 7, 4, controller)
	require.Nil(t, manual)
	o := changed(7)
	o.Now, o.History = noon().Add(time.Minute), h
	require.False(t, plan.NeedsWriter(o))
}

func TestAPausedPolicyForgetsWhatChangedMeanwhile(t *testing.T) {
	o := changed(7)
	o.Policy.Spec.Mode = v1alpha1.ModePaused
	h := o.History.Seen(o)
	resumed := changed(7)
	resumed.History = h
	require.False(t, plan.NeedsWriter(resumed))
}

func TestADecisionKnowsTheWriterOfTheReplicas(t *testing.T) {
	o := changed(7)
	o.Writer = &plan.WriterLookup{Writer: byKubectl()}
	want := &policy.ManualRaise{ReplicasAt: policy.ReplicasAt{At: noon(), Replicas: 7}, By: "kubectl scale"}
	require.Equal(t, want, plan.Input(o).ManualRaise)

	next := changed(7)
	next.Now, next.History = noon().Add(15*time.Second), o.History.Seen(o)
	require.Equal(t, want, plan.Input(next).ManualRaise)

	o.Writer = &plan.WriterLookup{Failed: errors.New("no answer")}
	require.Equal(t, "an unknown writer", plan.Input(o).ManualRaise.By)

	lowered := changed(2)
	lowered.Writer = &plan.WriterLookup{Writer: byKubectl()}
	require.Nil(t, plan.Input(lowered).ManualRaise, "missing replicas are added again")
}

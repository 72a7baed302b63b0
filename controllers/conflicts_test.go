// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testScaledObject is a ScaledObject for the given target.
func testScaledObject(apiVersion, kind, name string) *unstructured.Unstructured {
	object := cluster.NewUnstructured(cluster.KindScaledObject)
	object.SetNamespace(fixture.Namespace)
	object.SetName("resize-so")
	object.SetUID("uid-so")
	object.Object["spec"] = map[string]any{"scaleTargetRef": map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"name": name,
	}}
	return object
}

// kedaAutoscaler is the HorizontalPodAutoscaler that KEDA creates for testScaledObject.
func kedaAutoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	hpa := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
	hpa.Name = "keda-hpa-resize-so"
	fixture.SetOwner(hpa, "keda.sh/v1alpha1", "ScaledObject", "resize-so")
	return hpa
}

// meshAutoscaler is the HorizontalPodAutoscaler that Function Mesh creates for fixture.Function.
func meshAutoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	hpa := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
	hpa.Name = "resize-function"
	fixture.SetOwner(hpa, "compute.functionmesh.io/v1alpha1", "Function", "resize")
	return hpa
}

// testVerticalAutoscaler targets the StatefulSet of fixture.Function.
func testVerticalAutoscaler(mode string) *unstructured.Unstructured {
	object := cluster.NewUnstructured(cluster.KindVerticalPodAutoscaler)
	object.SetNamespace(fixture.Namespace)
	object.SetName("vpa")
	object.Object["spec"] = map[string]any{
		"targetRef":    map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "resize-function"},
		"updatePolicy": map[string]any{"updateMode": mode},
	}
	return object
}

func TestNothingIsWrittenWhileAnotherAutoscalerIsInTheWay(t *testing.T) {
	paused := func(key, value string) *unstructured.Unstructured {
		object := testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize")
		object.SetAnnotations(map[string]string{key: value})
		return object
	}
	tests := map[string]struct {
		objects []client.Object
		change  func(f *unstructured.Unstructured)
		// want is the condition AutoscalerApplied; empty without a conflict.
		want, message string
	}{
		"Function Mesh runs its own": {
			objects: []client.Object{meshAutoscaler()}, change: func(
				f *unstructured.Unstructured,
			) {
				fixture.Spec(f)["maxReplicas"] = int64(5)
			},
			want: "False/FunctionHasOwnAutoscaler",
			message: "remove spec.maxReplicas, then delete HorizontalPodAutoscaler resize-function, or set conflictPolicy: " +
				"TakeOver",
		},
		"Function Mesh's own remains": {
			objects: []client.Object{meshAutoscaler()}, want: "False/AutoscalerOrphaned",
			message: "delete it, since Function Mesh does not, or set conflictPolicy: TakeOver",
		},
		"a ScaledObject on the Function": {
			objects: []client.Object{
				testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize"),
				kedaAutoscaler(),
			},
			want: "False/ConflictingAutoscaler",
			message: "ScaledObject resize-so scales Function resize, and two autoscalers on the same pods stop both: delete " +
				"it, or pause it with the annotation " +
				`autoscaling.keda.sh/paused: "true", or set conflictPolicy: TakeOver`,
		},
		"a ScaledObject on the StatefulSet": {
			objects: []client.Object{testScaledObject("apps/v1", "StatefulSet", "resize-function")},
			want:    "False/ConflictingAutoscaler", message: "DELETED AND RECREATED AT EVERY SYNC",
		},
		"a paused ScaledObject with an autoscaler": {
			objects: []client.Object{paused(plan.AnnotationPaused, "true"), kedaAutoscaler()},
			want:    "False/ConflictingAutoscaler", message: "ScaledObject resize-so is paused, so KEDA is about to delete it",
		},
		"a ScaledObject that is paused":             {objects: []client.Object{paused(plan.AnnotationPaused, "true")}},
		"a ScaledObject that is paused at a number": {objects: []client.Object{paused(plan.AnnotationPausedAt, "0")}},
		"a ScaledObject that is not paused any more": {
			objects: []client.Object{paused(plan.AnnotationPaused, "false")},
			want:    "False/ConflictingAutoscaler",
		},
		"a ScaledObject on a Deployment of the name": {objects: []client.Object{testScaledObject("", "", "resize")}},
		"an autoscaler that another controller makes": {
			objects: []client.Object{owned("Widget", "w")},
			want:    "False/ConflictingAutoscaler", message: "Widget w created it and would recreate it,",
		},
		"two others": {
			objects: []client.Object{owned("Widget", "w"), testScaledObject("apps/v1", "StatefulSet", "resize-function")},
			want:    "False/ConflictingAutoscaler",
			message: "; so does ScaledObject resize-so scales StatefulSet resize-function",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			function := fixture.Function()
			if test.change != nil {
				test.change(function)
			}
			env := newTestEnv(t, append(test.objects, function, fixture.Policy(), fixture.ConfigMap())...)
			env.reconcile()
			env.answer(700, 10_000)
			wrote := env.reconcile()
			if test.want == "" {
				require.Contains(t, wrote, "apply")
				return
			}
			require.Equal(t, []string{"patch status"}, wrote)
			status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.want, status)
			require.Contains(t, message, test.message)
			ready, _ := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, test.want, ready)
			require.Len(t, env.events(), 2, "the violation and the decision")
			env.after(testInterval)
			env.answer(700, 10_000)
			require.NotContains(t, env.reconcile(), "apply")
		})
	}
}

func owned(kind, name string) client.Object {
	hpa := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
	fixture.SetOwner(hpa, "v1", kind, name)
	return hpa
}

func TestThePolicyThatNamesATargetTakesPrecedence(t *testing.T) {
	hour := func(p *v1alpha1.AutoscalingPolicy, hours int) *v1alpha1.AutoscalingPolicy {
		p.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(time.Duration(hours) * time.Hour))
		return p
	}
	other := func(hours int, change func(*v1alpha1.AutoscalingPolicySpec)) *v1alpha1.AutoscalingPolicy {
		p := fixture.Policy()
		p.Name, p.UID = "other", "uid-other"
		if change != nil {
			change(&p.Spec)
		}
		return hour(p, hours)
	}
	made := func(p *v1alpha1.AutoscalingPolicy) *v1alpha1.AutoscalingPolicy {
		fixture.SetOwner(p, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicySet, "all")
		return p
	}
	component := func(s *v1alpha1.AutoscalingPolicySpec) {
		s.ScaleTargetRef = v1alpha1.ScaleTargetRef{
			APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "re",
			Component: v1alpha1.MeshComponent{Kind: "Function", Name: "size"},
		}
	}
	child := fixture.Policy()
	child.Spec.ScaleTargetRef.Name = "re-size"
	worker := fixture.Policy()
	worker.Spec.ScaleTargetRef, worker.Spec.PulsarFunctionRef = v1alpha1.ScaleTargetRef{}, v1alpha1.PulsarFunctionRef{
		Name: "resize",
	}
	sameFunction := func(s *v1alpha1.AutoscalingPolicySpec) {
		s.ScaleTargetRef = v1alpha1.ScaleTargetRef{}
		s.PulsarFunctionRef = v1alpha1.PulsarFunctionRef{
			Kind: "Function", Tenant: "public", Namespace: "default",
			Name: "resize",
		}
	}
	foreign := func(p *v1alpha1.AutoscalingPolicy) *v1alpha1.AutoscalingPolicy {
		fixture.SetOwner(p, "autoscaling.example.com/v1", v1alpha1.KindAutoscalingPolicySet, "all")
		return p
	}
	elsewhere := func(p *v1alpha1.AutoscalingPolicy) *v1alpha1.AutoscalingPolicy {
		p.Namespace = "shop"
		return p
	}
	tests := map[string]struct {
		ours, other *v1alpha1.AutoscalingPolicy
		first       string
		names       bool
	}{
		"the older":                                   {fixture.Policy(), other(-1, nil), "other", false},
		"ours is older":                               {fixture.Policy(), other(1, nil), "", false},
		"a user's before an older one of a set":       {fixture.Policy(), made(other(-1, nil)), "", false},
		"one of a set and one of a user":              {made(fixture.Policy()), other(1, nil), "other", true},
		"both of sets":                                {made(fixture.Policy()), made(other(-1, nil)), "other", false},
		"a component of a mesh and the child of it":   {child, other(-1, component), "other", false},
		"a function of a worker by full name":         {worker, other(-1, sameFunction), "other", false},
		"a function of a worker in another namespace": {worker, elsewhere(other(-1, sameFunction)), "shop/other", false},
		"a function of a worker elsewhere": {worker, elsewhere(other(-1, func(s *v1alpha1.AutoscalingPolicySpec) {
			sameFunction(s)
			s.Pulsar = &v1alpha1.PulsarConnection{AdminURL: "http://elsewhere:8080"}
		})), "", false},
		"a Function of the name in another namespace":    {fixture.Policy(), elsewhere(other(-1, nil)), "", false},
		"one that a user's object of the same kind owns": {fixture.Policy(), foreign(other(-1, nil)), "other", false},
		"another target": {
			fixture.Policy(),
			other(-1, func(s *v1alpha1.AutoscalingPolicySpec) { s.ScaleTargetRef.Name = "crop" }), "", false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, test.ours, test.other)
			var found plan.Autoscalers
			require.NoError(t, env.reconciler.observer.observePrecedence(t.Context(), test.ours, &found))
			require.Equal(t, test.first, found.OlderPolicy)
			require.Equal(t, test.names, found.OlderNames)
		})
	}
}

func TestAPolicyDefersToOneWithPrecedence(t *testing.T) {
	p := fixture.Policy()
	fixture.SetOwner(p, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicySet, "all")
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
	env.firstDecision(700)
	require.NotNil(t, env.autoscaler())
	named := fixture.Policy()
	named.Name, named.UID = "named", "uid-named"
	require.NoError(t, env.client.Create(t.Context(), named))
	require.Equal(t, []string{"delete " + plan.AutoscalerName("resize"), "patch status"}, env.reconcile())
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/OlderPolicy", status)
	require.Contains(t, message, "AutoscalingPolicy named names the same target")
	require.Equal(t, int64(3), env.replicas(), "replicas stay")
}

// replicas of the Function.
func (env *testEnv) replicas() int64 {
	env.t.Helper()
	f := fixture.Function()
	require.NoError(env.t, env.client.Get(env.t.Context(), fixture.Key(), f))
	replicas, _, err := unstructured.NestedInt64(f.Object, "spec", "replicas")
	require.NoError(env.t, err)
	return replicas
}

func TestASecondAutoscalerThatOnlyKubernetesSeesIsNamed(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	hpa := env.autoscaler()
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "AmbiguousSelector",
		Message: "pods by selector app=x are controlled by multiple HPAs: [media/" + hpa.Name + " media/by-labels]",
	}}
	require.NoError(t, env.client.Status().Update(t.Context(), hpa))
	env.events()
	env.reconcile()
	for _, name := range []string{v1alpha1.ConditionScalingActive, v1alpha1.ConditionReady} {
		status, message := env.condition(name)
		require.Equal(t, "False/AmbiguousSelector", status)
		require.Equal(t,
			"HorizontalPodAutoscaler media/by-labels selects the same pods, which stops both: delete it, or give its pods "+
				"labels of their own", message)
	}
	require.Len(t, env.events(), 1)
}

func TestSideEffectsOfAChangeOfReplicasAreReported(t *testing.T) {
	restarted := func(set *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(set.Object, "2026-01-01T00:00:00Z", "spec", "template", "metadata", "annotations",
			cluster.AnnotationRestartedAt)
	}
	secrets := map[string]any{"A": map[string]any{"path": "p"}, "B": map[string]any{"path": "p"}}
	tests := map[string]struct {
		change  func(f *unstructured.Unstructured)
		objects []client.Object
		want    []string
		restart bool
	}{
		"nothing": {objects: []client.Object{fixture.StatefulSet(nil)}},
		"one secret": {change: func(f *unstructured.Unstructured) {
			fixture.Spec(f)["secretsMap"] = map[string]any{"A": map[string]any{"path": "p"}}
		}},
		"two secrets": {
			change: func(f *unstructured.Unstructured) { fixture.Spec(f)["secretsMap"] = secrets },
			want:   []string{v1alpha1.ReasonSecretsInRandomOrder},
		},
		"precise parallelism, two secrets": {change: func(f *unstructured.Unstructured) {
			fixture.Spec(f)["secretsMap"], fixture.Spec(f)["showPreciseParallelism"] = secrets, true
		}, want: []string{v1alpha1.ReasonPreciseParallelism, v1alpha1.ReasonSecretsInRandomOrder}, restart: true},
		"a restart by hand": {
			objects: []client.Object{fixture.StatefulSet(restarted)},
			want:    []string{v1alpha1.ReasonRestartUndone},
		},
		"a restart that the Function has": {
			objects: []client.Object{fixture.StatefulSet(restarted)},
			change: func(f *unstructured.Unstructured) {
				fixture.Spec(f)["pod"] = map[string]any{
					"annotations": map[string]any{cluster.AnnotationRestartedAt: "2026-01-01T00:00:00Z"},
				}
			},
		},
		"other resources": {
			objects: []client.Object{testVerticalAutoscaler("Auto")},
			want:    []string{v1alpha1.ReasonVerticalAutoscaler},
		},
		"other resources by default": {
			objects: []client.Object{testVerticalAutoscaler("")},
			want:    []string{v1alpha1.ReasonVerticalAutoscaler},
		},
		"other resources for new":    {objects: []client.Object{testVerticalAutoscaler("Initial")}},
		"advice on resources":        {objects: []client.Object{testVerticalAutoscaler("Off")}},
		"resources by Function Mesh": {change: vertical("Recreate"), want: []string{v1alpha1.ReasonVerticalAutoscaler}},
		"advice by Function Mesh":    {change: vertical("Off")},
		"a rollout that is paused":   {change: pauseRollout, want: []string{v1alpha1.ReasonRolloutPaused}},
		"paused, with nothing to do ": {change: func(f *unstructured.Unstructured) {
			pauseRollout(f)
			delete(f.Object,
				"status")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			function := fixture.Function()
			if test.change != nil {
				test.change(function)
			}
			env := newTestEnv(t, append(test.objects, function, fixture.Policy(), fixture.ConfigMap())...)
			observed, err := env.reconciler.observer.observe(t.Context(), fixture.Policy(), env.now)
			require.NoError(t, err)
			var reasons []string
			for _, d := range observed.Target.Disturbances {
				reasons = append(reasons, d.Reason)
			}
			require.Equal(t, test.want, reasons)
			require.Equal(t, test.restart, observed.Target.Restarts())
			env.firstDecision(700)
			status, _ := env.condition(v1alpha1.ConditionScalesWithoutRestart)
			if len(test.want) == 0 {
				require.Equal(t, "True/Undisturbed", status)
			} else {
				require.Equal(t, "False/"+test.want[0], status)
				require.NotEmpty(t, env.events())
			}
		})
	}
}

func vertical(mode string) func(*unstructured.Unstructured) {
	return func(f *unstructured.Unstructured) {
		fixture.Spec(f)["pod"] = map[string]any{"vpa": map[string]any{"updatePolicy": map[string]any{"updateMode": mode}}}
	}
}

func pauseRollout(f *unstructured.Unstructured) {
	f.SetAnnotations(map[string]string{cluster.AnnotationPauseRollout: "true"})
	f.Object["status"] = map[string]any{"pendingChange": "{}"}
}

func TestAPausedRolloutKeepsReplicasWhereTheyAre(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		t.Run(string(actuator), func(t *testing.T) {
			function, p := fixture.Function(), fixture.Policy()
			pauseRollout(function)
			p.Spec.Actuator, p.Spec.MinReplicas = actuator, new(int32(5))
			env := newTestEnv(t, function, p, fixture.ConfigMap())
			env.firstDecision(70_000)
			require.Nil(t, env.autoscaler(), "its minReplicas would release the rollout")
			require.Equal(t, int64(3), env.replicas())
			require.Equal(t, int32(3), *env.policy().Status.DesiredReplicas)
			require.Equal(t, policy.HoldRolloutPaused, env.policy().Status.Decision.Hold.Reason)

			require.NoError(t, env.client.Get(t.Context(), fixture.Key(), function))
			function.SetAnnotations(nil)
			require.NoError(t, env.client.Update(t.Context(), function))
			env.after(testInterval)
			env.answer(70_000, 90_000)
			require.NotEmpty(t, env.reconcile())
			require.Equal(t, int32(20), *env.policy().Status.DesiredReplicas)
		})
	}
}

func TestARolloutHoldsScaleDownOnly(t *testing.T) {
	rollout := func(set *unstructured.Unstructured) {
		set.Object["status"] = map[string]any{
			"currentRevision": "a", "updateRevision": "b", "replicas": int64(3),
			"updatedReplicas": int64(1),
		}
	}
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap(), fixture.StatefulSet(rollout))
	env.firstDecision(700)
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas,
		"a rollout may take hours, and new pods are of the new revision")
	observed, err := env.reconciler.observer.observe(t.Context(), fixture.Policy(), env.now)
	require.NoError(t, err)
	require.True(t, env.reconciler.observer.podHealth(observed.Subject).Updating)
}

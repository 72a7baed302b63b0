// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestWhatTheUserHasToMendBecomesACondition(t *testing.T) {
	spec := func(object *unstructured.Unstructured) map[string]any { return object.Object["spec"].(map[string]any) }
	older := func(mode v1alpha1.Mode) *v1alpha1.AutoscalingPolicy {
		p := testPolicy()
		p.Name, p.UID, p.Spec.Mode = "first", "uid-first", mode
		p.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(-time.Hour))
		return p
	}
	tests := map[string]struct {
		// world changes the Function and the policy, and returns what else there is.
		world     func(f *unstructured.Unstructured, p *v1alpha1.AutoscalingPolicy) []client.Object
		absent    bool
		condition string
		status    string
		message   string
		// tracked: the target is followed all the same.
		tracked bool
	}{
		"the target does not exist": {
			world: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				f.SetName("other")
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/TargetNotFound", message: "Function resize does not exist in namespace media",
		},
		"the kind is not supported": {
			world: func(_ *unstructured.Unstructured, p *v1alpha1.AutoscalingPolicy) []client.Object {
				p.Spec.ScaleTargetRef.APIVersion, p.Spec.ScaleTargetRef.Kind = "apps/v1", "Deployment"
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/TargetKindUnsupported",
			message: "kind Deployment of apps/v1 is not supported: use Function of compute.functionmesh.io/v1alpha1",
		},
		"Function Mesh is not installed": {
			absent: true, condition: v1alpha1.ConditionTargetFound, status: "False/TargetKindUnsupported", message: "install Function Mesh",
		},
		"the inputs are a pattern": {
			world: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				spec(f)["input"] = map[string]any{"topicPattern": "persistent://public/default/.*"}
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/TargetInvalid", message: "topicPattern is not supported yet",
		},
		"the Function has no replicas": {
			world: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				delete(spec(f), "replicas")
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/ReplicasUnset", message: "set it to 1",
		},
		"the Function belongs to a mesh": {
			world: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				yes := true
				f.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "photos", UID: "mesh", Controller: &yes,
				}})
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/OwnedByFunctionMesh", message: "belongs to FunctionMesh photos",
		},
		"Function Mesh was told to leave the Function alone": {
			world: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				f.SetAnnotations(map[string]string{"compute.functionmesh.io/managed": "false"})
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/Unmanaged", message: "remove the annotation",
		},
		"Function Mesh runs an autoscaler of its own": {
			world: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				spec(f)["maxReplicas"] = int64(5)
				return nil
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/FunctionHasOwnAutoscaler", message: "remove spec.maxReplicas", tracked: true,
		},
		"another autoscaler scales the Function": {
			world: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				return []client.Object{otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/RivalAutoscaler", message: "theirs scales Function resize", tracked: true,
		},
		"another autoscaler scales the StatefulSet behind the Function": {
			world: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				return []client.Object{otherAutoscaler("apps/v1", "StatefulSet", "resize-function")}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/RivalAutoscaler", message: "theirs scales StatefulSet resize-function", tracked: true,
		},
		"an older policy scales the Function": {
			world: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				return []client.Object{older(v1alpha1.ModeEnforce)}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/OlderPolicy", message: "AutoscalingPolicy first is older", tracked: true,
		},
		"an older policy only recommends": {
			world: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				return []client.Object{older(v1alpha1.ModeRecommend)}
			},
			condition: v1alpha1.ConditionTargetFound, status: "True/Found", tracked: true,
		},
		"our name is taken": {
			world: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				taken := otherAutoscaler("apps/v1", "Deployment", "web")
				taken.Name = policy.AutoscalerName("resize")
				return []client.Object{taken}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/AutoscalerNameTaken", message: "is not this policy's", tracked: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			function, p := testFunction(), testPolicy()
			objects := []client.Object{function, p, testConfigMap()}
			if test.world != nil {
				objects = append(objects, test.world(function, p)...)
			}
			w := newTestWorld(t, objects...)
			w.installed = !test.absent
			require.Equal(t, []string{"patch status"}, w.reconcile())
			status, message := w.condition(test.condition)
			require.Equal(t, test.status, status)
			require.Contains(t, message, test.message)
			require.Equal(t, int64(1), w.policy().Status.ObservedGeneration)
			_, err := w.store.Read(backlog.NewSubscription(testCluster, "public/default/resize", "in"), w.now)
			if test.tracked {
				require.ErrorIs(t, err, backlog.ErrNoData)
			} else {
				require.ErrorIs(t, err, backlog.ErrNotTracked)
			}
			require.Empty(t, w.reconcile(), "a second look at the same world writes nothing")
		})
	}
}

func TestTheFirstReadingLeadsToAnAutoscalerAndAStatus(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	require.Equal(t, []string{"patch status"}, w.reconcile(), "no autoscaler before there is a number for it")
	status, _ := w.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "Unknown/NoDataYet", status)
	require.Empty(t, w.events())

	w.answer(700, 10_000)
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	p, hpa := w.policy(), w.autoscaler()
	require.NotNil(t, hpa)
	require.True(t, metav1.IsControlledBy(hpa, p))
	require.Equal(t, int32(20), hpa.Spec.MaxReplicas)
	require.Equal(t, int32(7), *p.Status.DesiredReplicas)
	require.Equal(t, int32(3), *p.Status.CurrentReplicas)
	require.Equal(t, hpa.Name, p.Status.HorizontalPodAutoscaler)
	require.Equal(t, int64(700), *p.Status.Signals.ReadyMessages)
	require.Equal(t, []string{"Normal DesiredReplicasChanged 3 -> 7: 700 waiting / 100 per replica = 7.00"}, w.events())
	require.Equal(t, 1, w.metric("pulsar_autoscaler_policy_desired_replicas"))
}

func TestAWorldThatDidNotChangeIsNotWrittenTo(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	for range 4 {
		require.Empty(t, w.reconcile())
		w.after(testInterval / 2)
	}
	w.after(5 * time.Minute)
	w.answer(700, 10_000)
	require.Equal(t, []string{"patch status"}, w.reconcile(), "the heartbeat of the status")
}

func TestADecisionThatChangesIsWrittenOnce(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	w.events()
	w.after(testInterval)
	w.answer(1_500, 11_000)
	require.Equal(t, []string{"patch status"}, w.reconcile(), "the autoscaler is as it was")
	require.Equal(t, int32(15), *w.policy().Status.DesiredReplicas)
	require.Equal(t, []string{"Normal DesiredReplicasChanged 7 -> 15: 1500 waiting / 100 per replica = 15.00"}, w.events())
}

func TestAChangedBoundIsAppliedToTheAutoscaler(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 5 })
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	require.Equal(t, int32(5), w.autoscaler().Spec.MaxReplicas)
	require.Equal(t, int32(5), *w.policy().Status.DesiredReplicas)
	require.Equal(t, "maxReplicas", w.policy().Status.Decision.CappedBy)
	require.Equal(t, int64(2), w.policy().Status.ObservedGeneration)
}

func TestABrokerThatIsDownKeepsTheDecision(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	w.events()
	w.after(2 * time.Minute)
	w.store.Fail(backlog.Topic{Cluster: testCluster, Name: testTopic}, fmt.Errorf("%w: connection refused", backlog.ErrUnreachable))
	require.Equal(t, []string{"patch status"}, w.reconcile())
	require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas)
	status, message := w.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "False/Stale", status)
	require.Contains(t, message, "connection refused")
	require.Len(t, w.events(), 1)
	require.NotNil(t, w.autoscaler())
	require.Empty(t, w.reconcile())
}

func TestRecommendChangesNothing(t *testing.T) {
	p := testPolicy()
	p.Spec.Mode = v1alpha1.ModeRecommend
	w := newTestWorld(t, testFunction(), p, testConfigMap(), otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize"))
	w.reconcile()
	w.answer(700, 10_000)
	require.Equal(t, []string{"patch status"}, w.reconcile(), "beside another autoscaler, which is what the mode is for")
	require.Nil(t, w.autoscaler())
	require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas)
	status, _ := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Recommending", status)
}

func TestAChangeToRecommendRemovesOurAutoscalerOnly(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
	require.Equal(t, []string{"delete " + policy.AutoscalerName("resize"), "patch status"}, w.reconcile())
	require.Nil(t, w.autoscaler())

	taken := otherAutoscaler("apps/v1", "Deployment", "web")
	taken.Name = policy.AutoscalerName("resize")
	require.NoError(t, w.client.Create(t.Context(), taken))
	require.Empty(t, w.reconcile())
	require.NotNil(t, w.autoscaler())
}

func TestARivalThatAppearsLaterFreezesWhatRuns(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	w.events()
	require.NoError(t, w.client.Create(t.Context(), otherAutoscaler("apps/v1", "StatefulSet", "resize-function")))
	require.Equal(t, []string{"patch status"}, w.reconcile())
	require.NotNil(t, w.autoscaler(), "with both in place Kubernetes stops both")
	require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas, "what we would do is still shown")
	events := w.events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Warning RivalAutoscaler")
}

func TestATargetThatJoinsAMeshIsLetGo(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	function := newFunction()
	require.NoError(t, w.client.Get(t.Context(), testKey(), function))
	yes := true
	function.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "photos", UID: "mesh", Controller: &yes,
	}})
	require.NoError(t, w.client.Update(t.Context(), function))
	require.Equal(t, []string{"patch status"}, w.reconcile())
	require.Nil(t, w.policy().Status.DesiredReplicas, "a number that is served would fight the mesh at every sync")
	require.Zero(t, w.metric("pulsar_autoscaler_policy_desired_replicas"))
}

func TestAnApplyThatIsTurnedDownBecomesACondition(t *testing.T) {
	conflict := apierrors.NewConflict(autoscalingv2.Resource("horizontalpodautoscalers"), "x", fmt.Errorf("conflict with %q: .spec.maxReplicas", "argocd"))
	conflict.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "argocd"`, Field: ".spec.maxReplicas"}}
	tests := map[string]struct {
		err             error
		reason, message string
	}{
		"another manager owns a field": {conflict, "False/FieldConflict", `"argocd"`},
		"permission is missing": {
			apierrors.NewForbidden(autoscalingv2.Resource("horizontalpodautoscalers"), "x", fmt.Errorf("needs patch")), "False/ApplyRefused", "needs patch",
		},
		"the object is invalid": {
			apierrors.NewInvalid(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler").GroupKind(), "x", nil), "False/ApplyRefused", "is invalid",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
			w.applyFails = test.err
			w.settle(700)
			status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.reason, status)
			require.Contains(t, message, test.message)
			require.Empty(t, w.reconcile(), "it is not tried again at once")
			require.NotEmpty(t, w.events())

			w.after(retryRefusedEvery)
			w.answer(700, 10_000)
			w.applyFails = nil
			require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
			status, _ = w.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, "True/Applied", status)
		})
	}
}

func TestATransientErrorIsTriedAgain(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.reconcile()
	w.answer(700, 10_000)
	w.applyFails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: testKey()})
	require.ErrorContains(t, err, "etcd is away")
	w.applyFails = nil
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
}

func TestARestartResumesFromTheStatus(t *testing.T) {
	p := testPolicy()
	p.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	desired := int32(3)
	p.Status = v1alpha1.AutoscalingPolicyStatus{
		DesiredReplicas: &desired,
		Capacity: &v1alpha1.Capacity{
			MessagesPerSecond: resource.MustParse("10"), Observations: 40, LearnedAt: metav1.NewTime(time.Unix(1_799_999_000, 0)),
		},
	}
	w := newTestWorld(t, testFunction(), p, testConfigMap())
	require.Empty(t, w.reconcile(), "the status in force stands while the first answer is under way")
	w.answer(0, 10_000)
	w.after(testInterval)
	w.answer(0, 10_000+15*70)
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	status := w.policy().Status
	require.Equal(t, int32(10), *status.DesiredReplicas, "70/s at 70 % of 10/s")
	require.Equal(t, int32(40), status.Capacity.Observations)
}

func TestDeletionUntracks(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	subscription := backlog.NewSubscription(testCluster, "public/default/resize", "in")
	_, err := w.store.Read(subscription, w.now)
	require.NoError(t, err)
	require.NoError(t, w.client.Delete(t.Context(), w.policy()))
	require.Empty(t, w.reconcile())
	_, err = w.store.Read(subscription, w.now)
	require.ErrorIs(t, err, backlog.ErrNotTracked)
	require.Zero(t, w.metric("pulsar_autoscaler_policy_desired_replicas"))
	require.Empty(t, w.reconciler.tracked.memories)
	require.Empty(t, w.reconciler.tracked.users)
}

func TestAPolicyMadeAnewStartsAfresh(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(1_500)
	again := testPolicy()
	again.UID = "uid-again"
	require.NoError(t, w.client.Delete(t.Context(), w.policy()))
	require.NoError(t, w.client.Delete(t.Context(), w.autoscaler()))
	require.NoError(t, w.client.Create(t.Context(), again))
	w.after(testInterval)
	w.answer(100, 11_000)
	w.reconcile()
	require.Equal(t, int32(3), *w.policy().Status.DesiredReplicas, "held at the replicas that run, not at the 15 of its forerunner")
}

func TestNewsOfATopicQueuesItsPolicies(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	topic := backlog.Topic{Cluster: testCluster, Name: testTopic}
	w.reconciler.Poked(topic) // no queue yet: not the leader
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	require.NoError(t, news{tracked: w.reconciler.tracked}.Start(t.Context(), queue))
	w.reconcile()
	w.reconciler.Poked(backlog.Topic{Cluster: testCluster, Name: "persistent://public/default/other"})
	require.Zero(t, queue.Len())
	w.reconciler.Poked(topic)
	w.reconciler.Poked(topic)
	require.Equal(t, 1, queue.Len())
	request, _ := queue.Get()
	require.Equal(t, testKey(), request.NamespacedName)
}

func TestTheAutoscalersConditionIsMirrored(t *testing.T) {
	w := newTestWorld(t, testFunction(), testPolicy(), testConfigMap())
	w.settle(700)
	hpa := w.autoscaler()
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "AmbiguousSelector", Message: "controlled by multiple HPAs",
	}}
	require.NoError(t, w.client.Status().Update(t.Context(), hpa))
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/AmbiguousSelector", status)
	require.Equal(t, "controlled by multiple HPAs", message)
}

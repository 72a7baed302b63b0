// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const clientSideApply = "kubectl-client-side-apply"

// applied is a manager that owns a field of the spec by server-side apply.
func applied(manager, field string) []metav1.ManagedFieldsEntry {
	entries := writtenBy(manager, "", field)
	entries[0].Operation = metav1.ManagedFieldsOperationApply
	return entries
}

// resetMesh writes replicas to entry resize like an apply of a manifest.
func (env *testEnv) resetMesh(replicas int64, by []metav1.ManagedFieldsEntry) {
	env.t.Helper()
	env.managed.entries = by
	env.editMesh(func(mesh *unstructured.Unstructured) { fixture.EntryAt(mesh, 1)["replicas"] = replicas })
}

// followMesh copies entry resize to its child, as Function Mesh does.
func (env *testEnv) followMesh() {
	env.t.Helper()
	child := childAt("resize", 0)
	require.NoError(env.t, env.client.Get(env.t.Context(), client.ObjectKeyFromObject(child), child))
	fixture.Spec(child)["replicas"] = env.replicasInMesh()["resize"]
	require.NoError(env.t, env.client.Update(env.t.Context(), child))
}

// resetStep reconciles under load after d, and Function Mesh follows.
func (env *testEnv) resetStep(d time.Duration) {
	env.t.Helper()
	env.after(d)
	env.answer(700, 10_000)
	env.reconcile()
	env.followMesh()
}

// meshEnv has a component at 7 replicas.
func meshEnv(t *testing.T) *testEnv {
	t.Helper()
	env := newTestEnv(t, fixture.Mesh(), childAt("tag", 3), childAt("resize", 3), fixture.ComponentPolicy(),
		fixture.ConfigMap())
	env.firstDecision(700)
	env.reconcile()
	require.Equal(t, int64(7), env.replicasInMesh()["resize"])
	env.followMesh()
	env.events()
	env.after(testInterval)
	env.answer(200, 10_000) // the window holds 7, the load alone would need 2
	env.reconcile()
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	return env
}

func TestAnEntryThatAnApplyResetsIsRestoredAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		to int64
		by []metav1.ManagedFieldsEntry
	}{
		"kubectl apply":                       {1, writtenBy(clientSideApply, "", "functions")},
		"a server-side apply":                 {1, applied("gitops", "functions")},
		"an apply that raises it":             {12, writtenBy(clientSideApply, "", "functions")},
		"an apply without replicas, which is": {-1, writtenBy(clientSideApply, "", "functions")},
	} {
		t.Run(name, func(t *testing.T) {
			env := meshEnv(t)
			if test.to < 0 {
				env.managed.entries = test.by
				env.editMesh(func(mesh *unstructured.Unstructured) { delete(fixture.EntryAt(mesh, 1), "replicas") })
			} else {
				env.resetMesh(test.to, test.by)
			}
			env.after(time.Second)
			env.reconcile()
			require.Equal(t, int64(7), env.replicasInMesh()["resize"])
			require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
			require.Len(t, env.events(), 1, "only who reset it: the decision is the same")
			for range 3 {
				env.after(testInterval)
				env.answer(200, 10_000)
				env.reconcile()
				require.Equal(t, int64(7), env.replicasInMesh()["resize"])
			}
			require.Equal(t, 1, env.managed.reads)
			require.Empty(t, env.events())
		})
	}
}

func TestAnApplyDuringAnOutageIsUndoneToo(t *testing.T) {
	env := meshEnv(t)
	env.after(2 * time.Minute)
	env.resetMesh(1, writtenBy(clientSideApply, "", "functions"))
	env.reconcile()
	require.Equal(t, int64(7), env.replicasInMesh()["resize"])
	status, _ := env.condition(v1alpha1.ConditionBacklogKnown)
	require.Equal(t, "False/Stale", status)
}

func TestAnApplyBeforeAChangeOfTheLeaderIsUndone(t *testing.T) {
	env := meshEnv(t)
	env.resetMesh(1, writtenBy(clientSideApply, "", "functions"))
	env.restart()
	env.after(time.Second)
	env.reconcile()
	require.Equal(t, int64(7), env.replicasInMesh()["resize"])
}

func TestAFailedRestorationIsRetried(t *testing.T) {
	env := meshEnv(t)
	env.resetMesh(1, writtenBy(clientSideApply, "", "functions"))
	env.patchFails = errors.New("the API server hangs")
	for range 3 {
		env.after(time.Second)
		_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		require.ErrorContains(t, err, "the API server hangs")
	}
	env.patchFails = nil
	env.after(time.Second)
	env.reconcile()
	require.Equal(t, int64(7), env.replicasInMesh()["resize"])
	require.Equal(t, 1, env.managed.reads)
}

func TestDeploysWithinTenMinutesAreAllUndoneAtOnce(t *testing.T) {
	env := meshEnv(t)
	for range 3 {
		env.resetMesh(1, writtenBy(clientSideApply, "", "functions"))
		env.resetStep(time.Second)
		require.Equal(t, int64(7), env.replicasInMesh()["resize"])
		for range 12 { // 3 min
			env.resetStep(testInterval)
		}
		status, message := env.condition(v1alpha1.ConditionReady)
		require.Equal(t, "True/Scaling", status, message)
	}
}

// TestAToolThatRevertsWithinSecondsIsOverwrittenLessAndLessOften: each write would start replicas that it removes.
func TestAToolThatRevertsWithinSecondsIsOverwrittenLessAndLessOften(t *testing.T) {
	env := meshEnv(t)
	reset := func() {
		env.resetStep(time.Second) // the watch shows the write
		env.resetMesh(1, applied("argocd-controller", "functions"))
	}
	reset()
	env.resetStep(time.Second)
	require.Equal(t, int64(7), env.replicasInMesh()["resize"], "the first one is undone at once")
	for _, pause := range []string{"30s", "2m", "8m", "10m", "10m"} {
		reset()
		env.resetStep(time.Second)
		require.Equal(t, int32(1), *env.policy().Status.DesiredReplicas)
		require.Equal(t, "ReplicasReset", env.policy().Status.Decision.Hold.Reason)
		status, message := env.condition(v1alpha1.ConditionReady)
		require.Equal(t, "False/ReplicasReset", status)
		require.Equal(t, "spec.functions[resize].replicas was reset within a minute after the controller had written it back, "+
			"by Argo CD (manager argocd-controller, Apply): leave it out of the manifest and have the tool ignore it, see "+
			"docs/gitops.md; the controller pauses for "+pause+" before it writes it again", message)
		length, err := time.ParseDuration(pause)
		require.NoError(t, err)
		for at := testInterval; at < length; at += testInterval {
			env.resetStep(testInterval)
			require.Equal(t, int64(1), env.replicasInMesh()["resize"])
		}
		env.resetStep(testInterval)
		require.Equal(t, int64(7), env.replicasInMesh()["resize"], "the tool may have been corrected")
	}
	for range 5 { // it was
		env.resetStep(testInterval)
	}
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)
	reset()
	env.resetStep(time.Second)
	require.Equal(t, int64(7), env.replicasInMesh()["resize"], "the number stood for a minute: an ordinary deploy")
}

// TestARevertBeforeTheWriteIsSeenCountsToo: otherwise each event of the watch would be another write.
func TestARevertBeforeTheWriteIsSeenCountsToo(t *testing.T) {
	env := meshEnv(t)
	for _, want := range []int64{7, 7, 1, 1} { // the second may be a cache that lags behind the first write
		env.resetMesh(1, applied("argocd-controller", "functions"))
		env.resetStep(3 * time.Second)
		require.Equal(t, want, env.replicasInMesh()["resize"])
	}
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ReplicasReset", status)
}

func TestAnotherApplyDuringThePauseDoesNotProlongIt(t *testing.T) {
	env := meshEnv(t)
	for range 2 {
		env.resetMesh(1, applied("argocd-controller", "functions"))
		env.resetStep(time.Second)
		env.resetStep(time.Second)
	}
	require.Equal(t, int64(1), env.replicasInMesh()["resize"])
	env.resetStep(testInterval)
	env.resetMesh(2, applied("argocd-controller", "functions"))
	env.resetStep(time.Second)
	require.Equal(t, int64(2), env.replicasInMesh()["resize"])
	env.resetStep(testInterval)
	require.Equal(t, int64(7), env.replicasInMesh()["resize"])
}

func TestAnApplyOfZeroSwitchesScalingOff(t *testing.T) {
	env := meshEnv(t)
	env.resetMesh(0, writtenBy(clientSideApply, "", "functions"))
	env.after(time.Second)
	env.reconcile()
	require.Equal(t, int64(0), env.replicasInMesh()["resize"])
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/SwitchedOff", status)
}

func TestManualScalesAreNotUndone(t *testing.T) {
	env := meshEnv(t)
	env.resetMesh(9, writtenBy("kubectl-edit", "", "functions"))
	env.after(time.Second)
	env.reconcile()
	require.Equal(t, int64(9), env.replicasInMesh()["resize"])
	require.Equal(t, int32(9), *env.policy().Status.DesiredReplicas)
}

func TestAnApplyThatResetsTwoEntriesIsUndoneInBoth(t *testing.T) {
	env := meshEnv(t)
	sibling := fixture.ComponentPolicy()
	sibling.Name, sibling.UID = "tag", "uid-tag"
	sibling.Spec.ScaleTargetRef.Component.Name = "tag"
	sibling.Spec.MinReplicas = new(int32(4))
	require.NoError(t, env.client.Create(t.Context(), sibling))
	reconcileSibling := func() {
		_, err := env.reconciler.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: types.NamespacedName{Namespace: fixture.Namespace, Name: "tag"}})
		require.NoError(t, err)
	}
	env.answer(200, 10_000)
	reconcileSibling()
	env.answer(200, 10_000)
	reconcileSibling()
	reconcileSibling()
	require.Equal(t, map[string]any{"tag": int64(4), "resize": int64(7)}, env.replicasInMesh())

	env.after(time.Second)
	env.managed.entries = writtenBy(clientSideApply, "", "functions")
	env.editMesh(func(mesh *unstructured.Unstructured) {
		fixture.EntryAt(mesh, 0)["replicas"], fixture.EntryAt(mesh, 1)["replicas"] = int64(1), int64(1)
	})
	reconcileSibling()
	env.managed.entries = writtenBy("pulsar-autoscaler", "", "functions") // a list has one owner
	env.reconcile()
	require.Equal(t, map[string]any{"tag": int64(4), "resize": int64(7)}, env.replicasInMesh())
}

func TestAResetOfAFunctionIsUndoneByWhoWritesIt(t *testing.T) {
	tests := map[string]struct {
		policy *v1alpha1.AutoscalingPolicy
		want   []int64
	}{
		"the controller":            {directPolicy(), []int64{7}},
		"a HorizontalPodAutoscaler": {fixture.Policy(), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), test.policy, fixture.ConfigMap())
			env.firstDecision(700)
			env.scaleManually(7)
			env.reconcile()
			env.after(testInterval)
			env.answer(200, 10_000)
			env.reconcile()
			env.written = nil
			env.managed.entries = applied("kustomize-controller", "replicas")
			env.scaleManually(1)
			env.after(time.Second)
			env.reconcile()
			require.Equal(t, test.want, env.written)
		})
	}
}

// TestAToolThatResetsToZeroIsNotFought: nothing but the controller wakes a target, whatever writes its other numbers.
func TestAToolThatResetsToZeroIsNotFought(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorKEDA} {
		t.Run(string(actuator), func(t *testing.T) {
			env := newKEDAEnv(t, idleFunction(), idlePolicy(actuator))
			env.firstDecision(0)
			env.kedaRuns()
			env.goOn(500)
			require.Len(t, env.written, 1)
			for range 30 {
				env.after(time.Second)
				env.reconcile() // the watch shows the write
				env.managed.entries = applied("argocd-controller", "replicas")
				env.scaleManually(0)
				env.after(time.Second)
				env.answer(500, 10_000)
				env.reconcile()
			}
			require.LessOrEqual(t, len(env.written), 4, "in a minute")
			status, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "False/ReplicasReset", status)
			require.Contains(t, message, "spec.replicas was reset within a minute after the controller had written it back, by "+
				"Argo CD (manager argocd-controller, Apply)")
			require.Zero(t, *env.policy().Status.DesiredReplicas)
		})
	}
}

func TestAnApplyOfZeroIsUndoneAtOnceWithEveryActuator(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorKEDA} {
		for name, pulsar := range map[string]func(*testEnv){
			"without a backlog":            func(env *testEnv) { env.answer(0, 10_000) },
			"while Pulsar does not answer": func(env *testEnv) { env.after(2 * time.Minute) },
		} {
			t.Run(string(actuator)+" "+name, func(t *testing.T) {
				env := newKEDAEnv(t, idleFunction(), idlePolicy(actuator))
				env.firstDecision(0)
				env.kedaRuns()
				env.goOn(500)
				env.after(time.Second)
				env.reconcile() // the watch shows the write
				env.written, env.managed.entries = nil, applied("argocd-controller", "replicas")
				env.scaleManually(0)
				env.after(time.Second)
				pulsar(env)
				env.reconcile()
				require.Equal(t, []int64{1}, env.written)
			})
		}
	}
}

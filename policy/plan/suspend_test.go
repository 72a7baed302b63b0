// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// contested is an observation of a policy with TakeOver and the given conflicting autoscalers.
func contested(conflicting ...plan.ConflictingAutoscaler) plan.Observed {
	w := world()
	w.Policy.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	w.Target.Scaled = []v1alpha1.ScaleTargetRef{
		w.Target.Ref,
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "resize-function"},
	}
	w.Conflicting = conflicting
	return w
}

func conflict(kind, name, owner string) plan.ConflictingAutoscaler {
	return plan.ConflictingAutoscaler{
		Kind: kind, Name: name, TargetKind: "Function", TargetName: "resize", Owner: owner, UID: "uid",
		Manifest: v1alpha1.Manifest(`{"metadata":{"name":"` + name + `"}}`),
	}
}

func TestNextSuspension(t *testing.T) {
	const hpa, so = "HorizontalPodAutoscaler", "ScaledObject"
	own := conflict(hpa, "resize-function", "Function resize")
	leaving := conflict(hpa, "keda-hpa-so", "ScaledObject so")
	leaving.Terminating = true
	set := func(w *plan.Observed) { w.Target.MaxReplicas = new(int32(5)) }
	theirs := conflict(hpa, "theirs", "")
	paused := func(names ...v1alpha1.ObjectName) func(*plan.Observed) {
		return func(w *plan.Observed) { w.Policy.Status.TakenOver = &v1alpha1.TakenOver{ScaledObjects: names} }
	}
	tests := map[string]struct {
		conflicting []plan.ConflictingAutoscaler
		change      func(*plan.Observed)
		unknown     error
		kind, name  string
		record      v1alpha1.TakenOver
		reason      string
	}{
		"nothing": {},
		"maxReplicas before the autoscaler that follows from it": {
			conflicting: []plan.ConflictingAutoscaler{
				own,
				theirs,
			}, change: set, record: v1alpha1.TakenOver{MaxReplicas: new(int32(5))},
		},
		"an orphan without a manifest": {
			conflicting: []plan.ConflictingAutoscaler{own}, change: func(
				w *plan.Observed,
			) {
				w.Policy.Status.TakenOver = &v1alpha1.TakenOver{MaxReplicas: new(int32(5))}
			},
			kind: hpa, name: "resize-function", record: v1alpha1.TakenOver{MaxReplicas: new(int32(5))},
		},
		"no fifth ScaledObject beside four that are paused": {
			conflicting: []plan.ConflictingAutoscaler{conflict(so, "fifth", "")}, change: paused("one", "two", "three",
				"four"), reason: v1alpha1.ReasonConflictingAutoscaler,
		},
		"one of four that a user resumed": {
			conflicting: []plan.ConflictingAutoscaler{conflict(so, "two", "")}, change: paused("one", "two", "three",
				"four"), kind: so, name: "two",
			record: v1alpha1.TakenOver{ScaledObjects: []v1alpha1.ObjectName{"one", "two", "three", "four"}},
		},
		"an earlier orphan": {
			conflicting: []plan.ConflictingAutoscaler{own}, kind: hpa, name: "resize-function",
			record: v1alpha1.TakenOver{HorizontalPodAutoscalers: []v1alpha1.Manifest{own.Manifest}},
		},
		"one without an owner": {
			conflicting: []plan.ConflictingAutoscaler{theirs}, kind: hpa, name: "theirs",
			record: v1alpha1.TakenOver{HorizontalPodAutoscalers: []v1alpha1.Manifest{theirs.Manifest}},
		},
		"one that is recorded already": {
			conflicting: []plan.ConflictingAutoscaler{theirs},
			change: func(w *plan.Observed) {
				w.Policy.Status.TakenOver = &v1alpha1.TakenOver{HorizontalPodAutoscalers: []v1alpha1.Manifest{`{"metadata":{"name":"theirs"},"spec":{}}`}}
			},
			kind: hpa, name: "theirs",
			record: v1alpha1.TakenOver{HorizontalPodAutoscalers: []v1alpha1.Manifest{theirs.Manifest}},
		},
		"a ScaledObject": {
			conflicting: []plan.ConflictingAutoscaler{conflict(so, "so", "")}, kind: so, name: "so",
			record: v1alpha1.TakenOver{ScaledObjects: []v1alpha1.ObjectName{"so"}},
		},
		"nothing while KEDA has to delete its own": {
			conflicting: []plan.ConflictingAutoscaler{leaving},
			reason:      v1alpha1.ReasonTakingOver,
		},
		"nothing with conflictPolicy Refuse": {
			conflicting: []plan.ConflictingAutoscaler{theirs}, change: func(
				w *plan.Observed,
			) {
				w.Policy.Spec.ConflictPolicy = v1alpha1.ConflictRefuse
			}, reason: v1alpha1.ReasonConflictingAutoscaler,
		},
		"nothing while the backlog is unknown": {
			conflicting: []plan.ConflictingAutoscaler{theirs}, unknown: errors.New("down"),
			reason: v1alpha1.ReasonTakingOver,
		},
		"nothing while a rollout is paused": {
			conflicting: []plan.ConflictingAutoscaler{theirs},
			change:      func(w *plan.Observed) { w.Target.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused} },
			reason:      v1alpha1.ReasonConflictingAutoscaler,
		},
		"nothing that the other autoscaler took to zero, where ours would not wake it": {
			conflicting: []plan.ConflictingAutoscaler{conflict(so, "so", "")},
			change:      func(w *plan.Observed) { w.Target.Replicas = new(int32) },
			reason:      v1alpha1.ReasonConflictingAutoscaler,
		},
		"a ScaledObject at zero, where ours may be too": {
			conflicting: []plan.ConflictingAutoscaler{conflict(so, "so", "")},
			change: func(w *plan.Observed) {
				w.Target.Replicas, w.Policy.Spec.MinReplicas = new(int32), new(int32)
			},
			kind: so, name: "so",
			record: v1alpha1.TakenOver{ScaledObjects: []v1alpha1.ObjectName{"so"}},
		},
		"nothing if one of them cannot be suspended": {
			conflicting: []plan.ConflictingAutoscaler{theirs, conflict(hpa, "z", "Widget w")},
			reason:      v1alpha1.ReasonConflictingAutoscaler,
		},
		"nothing of another policy": {
			conflicting: []plan.ConflictingAutoscaler{conflict(hpa, "z", "AutoscalingPolicy z")},
			reason:      v1alpha1.ReasonConflictingAutoscaler,
		},
		"nothing in a mesh": {
			conflicting: []plan.ConflictingAutoscaler{theirs},
			change:      func(w *plan.Observed) { w.Target.MeshOwner = "m" }, reason: v1alpha1.ReasonOwnedByFunctionMesh,
		},
		"nothing of an unmanaged target": {
			conflicting: []plan.ConflictingAutoscaler{theirs},
			change:      func(w *plan.Observed) { w.Target.Unmanaged = "Function resize" }, reason: v1alpha1.ReasonUnmanaged,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := contested(test.conflicting...)
			if test.change != nil {
				test.change(&w)
			}
			w.Violation, w.Unknown = plan.Check(w.Subject, w.Autoscalers), test.unknown
			step, problem := plan.NextSuspension(w)
			if equality.Semantic.DeepEqual(test.record, v1alpha1.TakenOver{}) {
				require.Nil(t, step)
				if test.reason == "" {
					require.Nil(t, problem)
					return
				}
				require.Equal(t, test.reason, problem.Reason)
				return
			}
			require.Nil(t, problem)
			require.Equal(t, test.kind, step.Kind)
			require.Equal(t, test.name, step.Name)
			require.Equal(t, test.record, step.Record)
		})
	}
}

func TestRestore(t *testing.T) {
	manifest := func(name, apiVersion, kind, target string) v1alpha1.Manifest {
		return v1alpha1.Manifest(`{"metadata":{"name":"` + name + `"},"spec":{"scaleTargetRef":{"apiVersion":"` + apiVersion +
			`","kind":"` + kind + `","name":"` + target + `"}}}`)
	}
	onTarget := manifest("theirs", "apps/v1", "StatefulSet", "resize-function")
	taken := v1alpha1.TakenOver{
		MaxReplicas: new(
			int32(5)), HorizontalPodAutoscalers: []v1alpha1.Manifest{onTarget}, ScaledObjects: []v1alpha1.ObjectName{"so"},
	}
	type given struct {
		max         bool
		autoscalers []string
		kept        []string
		// paused is true if the ScaledObject stays paused.
		paused bool
	}
	all := given{max: true, autoscalers: []string{"theirs"}}
	tests := map[string]struct {
		change func(*plan.Observed)
		want   given
	}{
		"all of it": {func(*plan.Observed) {}, all},
		"the target does not exist": {func(w *plan.Observed) { w.Target = nil }, given{
			autoscalers: []string{"theirs"}, kept: []string{"maxReplicas 5: the target is gone"},
		}},
		"a Deployment does not exist": {func(w *plan.Observed) {
			w.Target, w.Policy.Spec.ScaleTargetRef.Kind = nil, "Deployment"
		}, given{kept: []string{
			"maxReplicas 5: the target is gone", "HorizontalPodAutoscaler theirs: it does not scale the target",
		}}},
		"the target does not exist, and may come back": {func(w *plan.Observed) {
			ref := w.Policy.Spec.ScaleTargetRef
			w.Target = nil
			w.Policy.Status.TakenOver.HorizontalPodAutoscalers = []v1alpha1.Manifest{
				manifest("theirs", ref.APIVersion, ref.Kind, ref.Name),
				`{"metadata":{"name":"owned","ownerReferences":[{"kind":"` + v1alpha1.Manifest(ref.Kind) + `","name":"` +
					v1alpha1.Manifest(ref.Name) + `"}]},` +
					manifest("owned", ref.APIVersion, ref.Kind, ref.Name)[len(`{"metadata":{"name":"owned"},`):],
			}
		}, given{autoscalers: []string{"theirs"}, kept: []string{
			"maxReplicas 5: the target is gone", "HorizontalPodAutoscaler owned: its owner may be gone like the target",
		}}},
		"the mesh of the target does not exist, and may come back": {func(w *plan.Observed) {
			w.Policy.Spec = componentWorld().Policy.Spec
			child := plan.MeshChild(w.Policy.Spec.ScaleTargetRef)
			w.Target = nil
			w.Policy.Status.TakenOver.HorizontalPodAutoscalers = []v1alpha1.Manifest{
				manifest("theirs", child.APIVersion, child.Kind, child.Name),
			}
		}, given{autoscalers: []string{"theirs"}, kept: []string{"maxReplicas 5: the target is gone"}}},
		"the entry of the mesh does not exist, and may come back": {func(w *plan.Observed) {
			w.Policy.Spec = componentWorld().Policy.Spec
			child := plan.MeshChild(w.Policy.Spec.ScaleTargetRef)
			w.Target.Scaled = nil
			w.Policy.Status.TakenOver.HorizontalPodAutoscalers = []v1alpha1.Manifest{
				manifest("theirs", child.APIVersion, child.Kind, child.Name),
			}
		}, given{max: true, autoscalers: []string{"theirs"}}},
		"a user set maxReplicas": {func(w *plan.Observed) { w.Target.MaxReplicas = new(int32(9)) }, given{
			autoscalers: []string{"theirs"}, kept: []string{"maxReplicas 5: a user or another controller set it meanwhile"},
		}},
		"at zero, where a restored HPA is disabled": {func(w *plan.Observed) { w.Target.Replicas = new(int32) }, given{
			max: true, autoscalers: []string{"theirs"},
			kept: []string{"replicas of Function resize: they stay 0, which disables a HorizontalPodAutoscaler: set them " +
				"to 1 or more"},
		}},
		"a rollout is paused": {func(w *plan.Observed) { w.Target.Frozen = &policy.Hold{Message: "paused"} }, given{
			autoscalers: []string{"theirs"}, kept: []string{"maxReplicas 5: paused"},
		}},
		"the autoscaler exists again": {func(w *plan.Observed) {
			w.Conflicting = []plan.ConflictingAutoscaler{conflict("HorizontalPodAutoscaler",
				"theirs", "")}
		}, given{max: true, kept: []string{"HorizontalPodAutoscaler theirs: it exists already"}}},
		"another autoscaler exists now": {func(
			w *plan.Observed,
		) {
			w.Conflicting = []plan.ConflictingAutoscaler{conflict("HorizontalPodAutoscaler", "new", "")}
		}, given{
			paused: true, kept: []string{
				"ScaledObject so: HorizontalPodAutoscaler new scales Function resize by now",
				"maxReplicas 5: HorizontalPodAutoscaler new scales Function resize by now",
				"HorizontalPodAutoscaler theirs: HorizontalPodAutoscaler new scales Function resize by now",
			},
		}},
		"Function Mesh recreated its autoscaler already": {func(w *plan.Observed) {
			w.Target.MaxReplicas = new(int32(5))
			w.Conflicting = []plan.ConflictingAutoscaler{
				conflict("HorizontalPodAutoscaler", "resize-function", "Function resize"),
			}
		}, given{
			autoscalers: []string{"theirs"},
			kept:        []string{"maxReplicas 5: a user or another controller set it meanwhile"},
		}},
		"a manifest of another object": {func(w *plan.Observed) {
			w.Policy.Status.TakenOver.HorizontalPodAutoscalers[0] = manifest("evil", "apps/v1", "Deployment", "web")
		}, given{max: true, kept: []string{"HorizontalPodAutoscaler evil: it does not scale the target"}}},
		"a manifest with another owner": {func(w *plan.Observed) {
			w.Policy.Status.TakenOver.HorizontalPodAutoscalers[0] = `{"metadata":{"name":"evil","ownerReferences":[{"kind":"Pod","name":"x"}]},` + onTarget[len(`{"metadata":{"name":"theirs"},`):]
		}, given{max: true, kept: []string{"HorizontalPodAutoscaler evil: another object owns it"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := contested()
			w.Policy.Status.TakenOver = taken.DeepCopy()
			test.change(&w)
			back := plan.Restore(w.Subject, w.Autoscalers)
			got := given{max: back.MaxReplicas != nil, kept: back.Kept, paused: len(back.ScaledObjects) == 0}
			for _, hpa := range back.Autoscalers {
				got.autoscalers = append(got.autoscalers, hpa.Name)
			}
			require.Equal(t, test.want, got)
			require.False(t, back.RemoveOurs)
		})
	}
}

func TestNothingIsRestoredBesideAnAutoscalerOfOurs(t *testing.T) {
	ofKEDA := byKEDA(t)
	for name, test := range map[string]struct {
		change func(*plan.Observed)
		want   plan.Restoration
	}{
		"our HorizontalPodAutoscaler": {
			func(w *plan.Observed) { w.Autoscaler = applied(t, *w) }, plan.Restoration{RemoveOurs: true},
		},
		"our ScaledObject": {
			func(w *plan.Observed) { ofKEDA(w); w.KEDAAutoscaler = nil }, plan.Restoration{RemoveOurs: true},
		},
		"KEDA's autoscaler, which outlives our ScaledObject": {
			func(w *plan.Observed) { ofKEDA(w); w.ScaledObject = nil }, plan.Restoration{RemoveOurs: true},
		},
		"a user's of our name, which stays": {
			func(w *plan.Observed) { w.Autoscaler = applied(t, *w); w.Autoscaler.OwnerReferences = nil },
			plan.Restoration{ScaledObjects: []string{"so"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := contested()
			w.Policy.Status.TakenOver = &v1alpha1.TakenOver{ScaledObjects: []v1alpha1.ObjectName{"so"}}
			test.change(&w)
			require.Equal(t, test.want, plan.Restore(w.Subject, w.Autoscalers))
		})
	}
}

func TestAnAutoscalerThatReturnsAfterItsSuspension(t *testing.T) {
	orphan := conflict("HorizontalPodAutoscaler", "resize-function", "Function resize")
	theirs := conflict("HorizontalPodAutoscaler", "theirs", "")
	for name, test := range map[string]struct {
		conflicting plan.ConflictingAutoscaler
		after       time.Duration
		change      func(*plan.Observed)
		again       bool
	}{
		"an orphan is deleted again: no user wrote it": {orphan, time.Minute, func(*plan.Observed) {}, true},
		"another is left to the user who wrote it":     {theirs, time.Minute, func(*plan.Observed) {}, false},
		"another within the lag of a cache":            {theirs, time.Second, func(*plan.Observed) {}, true},
		"another after a change of the policy": {
			theirs, time.Minute, func(w *plan.Observed) { w.Policy.Generation++ }, true,
		},
		"another beside a target that was recreated": {
			theirs, time.Minute, func(w *plan.Observed) { w.Target.UID = "another" }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := contested(test.conflicting)
			w.Violation = plan.Check(w.Subject, w.Autoscalers)
			w.Target.UID, w.Reading = "one", &backlog.Reading{}
			first := plan.New(w, nil)
			require.NotNil(t, first.Suspend)
			w.History = w.History.After(w, first, plan.Result{Suspended: true})
			w.Now = w.Now.Add(test.after)
			test.change(&w)
			next := plan.New(w, nil)
			if test.again {
				require.Equal(t, first, next)
				return
			}
			require.Nil(t, next.Suspend)
			require.Equal(t, v1alpha1.ReasonRecreated, next.Violation.Reason)
		})
	}
}

func TestMustRestore(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		change func(p *v1alpha1.AutoscalingPolicy)
		want   bool
	}{
		"no takeover":           {func(*v1alpha1.AutoscalingPolicy) {}, false},
		"it still has TakeOver": {func(p *v1alpha1.AutoscalingPolicy) { p.Status.TakenOver = &v1alpha1.TakenOver{} }, false},
		"it refuses": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.TakenOver, p.Spec.ConflictPolicy = &v1alpha1.TakenOver{}, "Refuse"
		}, true},
		"it refuses, and was done but": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Finalizers, p.Spec.ConflictPolicy = []string{plan.Finalizer}, ""
		}, true},
		"it is deleted": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.TakenOver, p.DeletionTimestamp = &v1alpha1.TakenOver{}, &now
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := contested().Policy
			test.change(p)
			require.Equal(t, test.want, plan.MustRestore(p))
		})
	}
}

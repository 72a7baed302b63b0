// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func testScaler() plan.Scaler { return plan.Scaler{Address: "scaler:9090"} }

// liveScaledObject is ours as an API server would keep it.
func liveScaledObject(t testing.TB, w plan.Observed) *plan.LiveScaledObject {
	t.Helper()
	text, err := json.Marshal(plan.ScaledObject(w.Policy, w.Target, w.Capabilities.Scaler))
	require.NoError(t, err)
	var live plan.LiveScaledObject
	require.NoError(t, json.Unmarshal(text, &live))
	return &live
}

// byKEDA is an outcome on a target that KEDA has scaled for a while.
func byKEDA(t testing.TB) func(*plan.Observed) {
	t.Helper()
	return func(o *plan.Observed) {
		o.Actuator = v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorKEDA}
		o.Policy.Spec.Actuator = v1alpha1.ActuatorKEDA
		o.Capabilities = plan.Capabilities{KEDA: true, Scaler: testScaler()}
		o.ScaledObject = liveScaledObject(t, *o)
		o.KEDAAutoscaler, o.Autoscaler = applied(t, *o), nil
	}
}

func TestTheScaledObjectReadsTheDecision(t *testing.T) {
	w := world()
	w.Policy.Spec.MinReplicas = new(int32)
	configuration := plan.ScaledObject(w.Policy, w.Target,
		plan.Scaler{Address: "scaler:9090", TLS: true, Authentication: "ca"})
	require.Equal(t, plan.AutoscalerName("resize"), configuration.Metadata.Labels["scaledobject.keda.sh/name"],
		"so that KEDA does not write it")
	fields, err := configuration.Fields()
	require.NoError(t, err)
	text, err := json.MarshalIndent(fields["spec"], "", " ")
	require.NoError(t, err)
	rules := `{"policies": [{"periodSeconds": 1, "type": "Pods", "value": 32767}], "selectPolicy": "Max", "stabilizationWindowSeconds": 0, "tolerance": "0"}`
	require.JSONEq(t, `{
		"scaleTargetRef": {"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "name": "resize"},
		"pollingInterval": 30, "cooldownPeriod": 300, "initialCooldownPeriod": 300,
		"minReplicaCount": 0, "maxReplicaCount": 50,
		"advanced": {"restoreToOriginalReplicaCount": false, "horizontalPodAutoscalerConfig": {"name": "`+plan.AutoscalerName("resize")+`",
			"behavior": {"scaleUp": `+rules+`, "scaleDown": `+rules+`}}},
		"fallback": {"failureThreshold": 3, "replicas": 1, "behavior": "currentReplicas"},
		"triggers": [{"type": "external-push", "metadata": {"scalerAddress": "scaler:9090", "policy": "resize", "enableTLS": "true"},
			"authenticationRef": {"name": "ca", "kind": "ClusterTriggerAuthentication"}}]
	}`, string(text))

	bounds := func(change func(*plan.Observed)) plan.ScaledObjectSpec {
		w := world()
		change(&w)
		return plan.ScaledObject(w.Policy, w.Target, testScaler()).Spec
	}
	short := bounds(func(w *plan.Observed) {
		w.Policy.Spec.MinReplicas = new(int32)
		w.Policy.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: new(int32(5))}}
	})
	require.Equal(t, int32(60), *short.CooldownPeriod, "KEDA's own is a net below")
	require.Nil(t, bounds(func(*plan.Observed) {}).CooldownPeriod, "KEDA warns of it where it has no effect")
	never := bounds(func(w *plan.Observed) { w.Policy.Spec.MinReplicas, w.Target.NeverZero = new(int32), true })
	require.Equal(t, int32(1), never.MinReplicaCount)
}

func TestAScaledObjectIsCurrentWhenOurFieldsAre(t *testing.T) {
	w := world()
	w.Capabilities.Scaler = testScaler()
	wanted := plan.ScaledObject(w.Policy, w.Target, testScaler())
	require.False(t, plan.ScaledObjectIsCurrent(nil, wanted))
	for name, test := range map[string]struct {
		change func(*plan.LiveScaledObject)
		want   bool
	}{
		"as it is":                  {func(*plan.LiveScaledObject) {}, true},
		"another writer's label":    {func(l *plan.LiveScaledObject) { l.Labels["team"] = "x" }, true},
		"another name for KEDA":     {func(l *plan.LiveScaledObject) { l.Labels["scaledobject.keda.sh/name"] = "x" }, false},
		"another writer's cooldown": {func(l *plan.LiveScaledObject) { l.Spec.CooldownPeriod = new(int32(5)) }, true},
		"another bound":             {func(l *plan.LiveScaledObject) { l.Spec.MaxReplicaCount = 3 }, false},
		"another trigger beside": {func(l *plan.LiveScaledObject) {
			l.Spec.Triggers = append(l.Spec.Triggers,
				l.Spec.Triggers[0])
		}, false},
		"cached metrics": {func(l *plan.LiveScaledObject) { l.Spec.Triggers[0].UseCachedMetrics = true }, false},
		"replicas set back at end": {func(
			l *plan.LiveScaledObject,
		) {
			l.Spec.Advanced.RestoreToOriginalReplicaCount = true
		}, false},
		"without a tolerance": {func(l *plan.LiveScaledObject) {
			l.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior.ScaleUp.Tolerance = nil
		}, false},
		"our label is missing": {func(l *plan.LiveScaledObject) { delete(l.Labels, plan.LabelPolicy) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := liveScaledObject(t, w)
			test.change(live)
			require.Equal(t, test.want, plan.ScaledObjectIsCurrent(live, wanted))
		})
	}
}

// inKEDAsWords describes the writes of a plan, with those for KEDA.
func inKEDAsWords(p plan.Actions) string {
	words := inWords(p)
	if p.ScaledObject != nil {
		words += fmt.Sprintf(" scaledobject(min %d)", p.ScaledObject.Spec.MinReplicaCount)
	}
	if p.RemoveScaledObject {
		words += " gone"
	}
	return words
}

func TestNewPlanForKEDA(t *testing.T) {
	direct := func(o *plan.Observed) { o.Actuator.Type = v1alpha1.ActuatorDirect }
	hpa := func(o *plan.Observed) { o.Actuator.Type = v1alpha1.ActuatorHPA }
	none := func(o *plan.Observed) { o.ScaledObject, o.KEDAAutoscaler = nil, nil }
	leaving := func(o *plan.Observed) { o.ScaledObject.DeletionTimestamp = &metav1.Time{Time: noon()} }
	left := func(o *plan.Observed) { o.ScaledObject = nil }
	ours := func(o *plan.Observed) { o.Autoscaler, o.KEDAAutoscaler = applied(t, *o), nil }
	frozen := func(o *plan.Observed) { o.Target.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused} }
	unknown := func(o *plan.Observed) { o.Unknown = backlog.ErrUnreachable }
	paused := func(o *plan.Observed) { o.ScaledObject.Paused = true }
	violated := func(reason string) func(*plan.Observed) {
		return func(o *plan.Observed) {
			o.Violation = &plan.Violation{Condition: v1alpha1.ConditionAutoscalerApplied, Reason: reason}
		}
	}
	mode := func(m v1alpha1.Mode) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Policy.Spec.Mode = m }
	}
	type changes []func(*plan.Observed)
	tests := map[string]struct {
		current, decided int32
		given            changes
		want             string
	}{
		"KEDA follows a raise":                        {3, 7, nil, " scaledobject(min 1)"},
		"KEDA follows a lower number":                 {7, 3, changes{mayBeZero}, " scaledobject(min 0)"},
		"writes the status before the first replicas": {3, 7, changes{none}, "status scaledobject(min 1)"},
		"the controller wakes all that are needed": {
			0, 4,
			changes{mayBeZero},
			"status replicas=4 scaledobject(min 0)",
		},
		"the controller removes the last, after the status": {
			1, 0,
			changes{mayBeZero},
			"status replicas=0 scaledobject(min 0)",
		},
		"no change at zero":                          {0, 0, changes{mayBeZero}, " scaledobject(min 0)"},
		"no change while Pulsar is unavailable":      {0, 0, changes{mayBeZero, unknown}, " scaledobject(min 0)"},
		"no ScaledObject before the first decision":  {3, 3, changes{none, unknown}, ""},
		"switched off by hand, KEDA must not switch": {0, 4, nil, " gone"},
		"one at zero with a raised minReplicas":      {0, 1, changes{atZero}, "status replicas=1 scaledobject(min 1)"},
		"frozen within bounds":                       {3, 3, changes{frozen}, " scaledobject(min 1)"},
		"frozen out of bounds":                       {80, 80, changes{frozen}, " gone"},
		"paused by a user, does not wake":            {0, 4, changes{mayBeZero, paused}, " scaledobject(min 0)"},
		"paused by a user, removes none":             {2, 0, changes{mayBeZero, paused}, " scaledobject(min 0)"},
		"paused scale-in, removes none": {
			2, 0,
			changes{mayBeZero, func(o *plan.Observed) { o.ScaledObject.PausedIn = true }},
			" scaledobject(min 0)",
		},
		"paused downwards, it is woken": {
			0, 2,
			changes{
				mayBeZero,
				func(o *plan.Observed) { o.ScaledObject.PausedIn = true },
			},
			"status replicas=2 scaledobject(min 0)",
		},
		"paused scale-out, does not wake": {
			0, 2,
			changes{mayBeZero, func(o *plan.Observed) { o.ScaledObject.PausedOut = true }},
			" scaledobject(min 0)",
		},
		"only deletes our HPA first":          {0, 4, changes{mayBeZero, none, ours}, "remove"},
		"waits until the last one is deleted": {3, 7, changes{leaving}, ""},
		"and for its HPA":                     {3, 7, changes{left}, ""},
		"Direct waits for the ScaledObject":   {3, 7, changes{direct}, " gone"},
		"Direct waits for KEDA's HPA":         {3, 7, changes{direct, left}, " gone"},
		"the HPA waits for the ScaledObject":  {0, 7, changes{hpa, mayBeZero}, " gone"},
		"the HPA waits for KEDA's HPA":        {3, 7, changes{hpa, left}, " gone"},
		"a violation freezes":                 {3, 7, changes{violated(v1alpha1.ReasonConflictingAutoscaler)}, ""},
		"a policy that takes precedence": {
			3, 7,
			changes{violated(v1alpha1.ReasonOlderPolicy)},
			"remove gone",
		},
		"Recommend has none": {3, 7, changes{mode(v1alpha1.ModeRecommend)}, "remove gone"},
		"Off has none":       {3, 7, changes{mode(v1alpha1.ModePaused)}, "remove gone"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, test.current)
			byKEDA(t)(&o)
			for _, change := range test.given {
				change(&o)
			}
			require.Equal(t, test.want, inKEDAsWords(plan.New(o, &policy.Decision{Replicas: test.decided})))
		})
	}
}

func TestConditionsOfKEDA(t *testing.T) {
	says := func(kind string, status metav1.ConditionStatus, reason, message string) func(*plan.Observed) {
		return func(o *plan.Observed) {
			o.ScaledObject.Status.Conditions = append(o.ScaledObject.Status.Conditions,
				metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
		}
	}
	ready := says("Ready", metav1.ConditionTrue, "ScaledObjectReady", "")
	hpaSays := func(status corev1.ConditionStatus, reason, message string) func(*plan.Observed) {
		return func(o *plan.Observed) {
			hpa := plan.Observed{Autoscaler: o.KEDAAutoscaler}
			saying(&hpa, status, reason, message)
		}
	}
	hpa := func(o *plan.Observed) { o.Actuator.Type = v1alpha1.ActuatorHPA }
	leaving := func(o *plan.Observed) {
		o.ScaledObject.DeletionTimestamp = &metav1.Time{Time: noon().Add(-time.Second)}
	}
	stays := func(o *plan.Observed) {
		o.ScaledObject.DeletionTimestamp = &metav1.Time{Time: noon().Add(-2 * time.Minute)}
	}
	left := func(o *plan.Observed) { o.ScaledObject = nil }
	none := func(o *plan.Observed) { o.ScaledObject, o.KEDAAutoscaler = nil, nil }
	at := func(replicas int32) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Target.Replicas = &replicas }
	}
	type changes []func(*plan.Observed)
	const applied, active = v1alpha1.ConditionAutoscalerApplied, v1alpha1.ConditionScalingActive
	tests := map[string]struct {
		given     changes
		condition string
		want      string
		message   string
	}{
		"all is well": {
			changes{ready, hpaSays("True", "ValidMetricFound", "fine")},
			active,
			"True/ValidMetricFound", "fine",
		},
		"all is applied":      {changes{ready}, applied, "True/Applied", "ScaledObject pap-resize-"},
		"its HPA has not run": {changes{ready}, active, "Unknown/Pending", "KEDA has not reconciled"},
		"KEDA has created nothing yet": {
			changes{ready, func(o *plan.Observed) { o.KEDAAutoscaler = nil }},
			active,
			"Unknown/Pending", "KEDA has not created its HorizontalPodAutoscaler yet",
		},
		"KEDA finds fault": {
			changes{says("Ready", metav1.ConditionFalse, "ScaledObjectCheckFailed",
				"no scaler")}, active, "False/ScaledObjectCheckFailed", "KEDA reports for ScaledObject pap-resize-",
		},
		"the HPA gets no metric": {
			changes{
				ready,
				hpaSays("False", "FailedGetExternalMetric", "no metric"),
			}, active, "False/FailedGetExternalMetric", "no metric",
		},
		"KEDA falls back": {
			changes{
				ready, says("Fallback", metav1.ConditionTrue, "FallbackExists", "one trigger"),
				hpaSays("True", "ValidMetricFound", ""),
			},
			active, "False/Fallback", "KEDA gets no answer from the scaler",
		},
		"KEDA is about to remove the last": {
			changes{
				ready, mayBeZero, hpaSays("True", "ValidMetricFound", ""),
				says("Active", metav1.ConditionFalse, "ScalerCooldown", "cooling down"),
			},
			active, "True/ValidMetricFound", "KEDA is about to remove the last replica (ScalerCooldown): cooling down",
		},
		"KEDA is back from zero": {
			changes{ready, hpaSays("False", "ScalingDisabled", "zero")},
			active, "True/Scaling",
			"replicas woke from zero",
		},
		"a user paused it": {
			changes{ready, func(o *plan.Observed) { o.ScaledObject.Paused = true }},
			active,
			"False/ScaledObjectPaused", "remove it to resume",
		},
		"a user paused it at zero": {
			changes{
				mayBeZero, at(0),
				func(o *plan.Observed) { o.ScaledObject.Paused = true },
			}, active, "False/ScaledObjectPaused", "switches scaling off",
		},
		"at zero":      {changes{mayBeZero, at(0)}, active, "True/ScaledToZero", "a backlog wakes replicas"},
		"switched off": {changes{at(0), none}, applied, "True/SwitchedOff", "there is no ScaledObject while replicas are 0"},
		"an old server": {
			changes{func(o *plan.Observed) { o.KEDAAutoscaler.Spec.Behavior = nil }},
			applied, "True/ToleranceUnsupported", "changes of up to 10 %",
		},
		"no decision yet": {
			changes{none, func(o *plan.Observed) { o.Unknown = backlog.ErrUnreachable }},
			applied,
			"Unknown/Pending", "after the first decision",
		},
		"our HPA was deleted now": {changes{none}, applied, "Unknown/Pending", "is deleted"},
		"the one before is leaving": {
			changes{leaving},
			applied, "Unknown/Pending",
			"waiting until KEDA finalizes ScaledObject",
		},
		"its HPA is left":        {changes{left}, applied, "Unknown/Pending", "which follows its ScaledObject"},
		"it stays":               {changes{stays}, applied, "False/ScaledObjectStays", "check that KEDA's operator runs"},
		"it stays before an HPA": {changes{stays, hpa}, applied, "False/ScaledObjectStays", "deleted at 11:58:00"},
		"frozen out of bounds": {
			changes{
				none, at(80),
				func(o *plan.Observed) { o.Target.Frozen = &policy.Hold{Message: "a rollout is paused"} },
			}, applied, "Unknown/Pending", "within bounds",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			byKEDA(t)(&o)
			for _, change := range test.given {
				change(&o)
			}
			c := meta.FindStatusCondition(conditionsOf(nil, o), test.condition)
			require.NotNil(t, c)
			require.Equal(t, test.want, string(c.Status)+"/"+c.Reason, c.Message)
			require.Contains(t, c.Message, test.message)
		})
	}
}

func TestChecksOfKEDA(t *testing.T) {
	named := func(o *plan.Observed) { o.Policy.Spec.Actuator = v1alpha1.ActuatorKEDA }
	auto := func(o *plan.Observed) {
		o.Policy.Spec.Actuator, o.Capabilities.NoMetricsAPI = v1alpha1.ActuatorAuto, true
	}
	stranger := func(o *plan.Observed) { o.ScaledObject.OwnerReferences = nil }
	other := func(o *plan.Observed) { o.OtherScaledObjects = []string{"theirs"} }
	type changes []func(*plan.Observed)
	for name, test := range map[string]struct {
		given   changes
		want    string
		message string
	}{
		"all is well": {changes{named}, "", ""},
		"no address": {
			changes{named, func(o *plan.Observed) { o.Capabilities.Scaler = plan.Scaler{} }},
			v1alpha1.ReasonScalerUnknown, "set --keda-scaler-address",
		},
		"no KEDA": {
			changes{named, func(o *plan.Observed) { o.Capabilities.KEDA = false }},
			v1alpha1.ReasonKEDAMissing, "install KEDA",
		},
		"a stranger's": {
			changes{named, stranger},
			v1alpha1.ReasonNameTaken,
			"is not this policy's: rename or delete it",
		},
		"a stranger's, Auto": {changes{auto, stranger}, v1alpha1.ReasonNameTaken, "rename or delete it"},
		"another, paused": {
			changes{named, other},
			v1alpha1.ReasonOtherScaledObject,
			"ScaledObject theirs scales the same target",
		},
		"Auto does without": {changes{auto, other}, "", ""},
		"the HPA is not KEDA": {changes{
			stranger,
			func(o *plan.Observed) { o.Policy.Spec.Actuator = v1alpha1.ActuatorHPA },
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			byKEDA(t)(&o)
			for _, change := range test.given {
				change(&o)
			}
			v := plan.Check(o)
			if test.want == "" {
				require.Nil(t, v)
				return
			}
			require.NotNil(t, v)
			require.Equal(t, test.want, v.Reason)
			require.Contains(t, v.Message, test.message)
		})
	}
}

func TestAutoChoosesKEDAWithoutTheMetricsAPI(t *testing.T) {
	able := plan.Capabilities{NoMetricsAPI: true, KEDA: true, Scaler: testScaler()}
	reason := "no APIService serves custom.metrics.k8s.io, so no HorizontalPodAutoscaler can read metrics from the adapter"
	for name, test := range map[string]struct {
		change func(*plan.Observed)
		want   v1alpha1.ActuatorStatus
	}{
		"with everything installed": {
			func(*plan.Observed) {},
			v1alpha1.ActuatorStatus{
				Type:   v1alpha1.ActuatorKEDA,
				Reason: reason + "; KEDA is installed, and reads decisions from scaler:9090",
			},
		},
		"without the scaler": {
			func(w *plan.Observed) { w.Capabilities.Scaler = plan.Scaler{} },
			v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: reason + ": apply its APIService"},
		},
		"a function of a worker": {
			func(w *plan.Observed) { w.Target.Scaling = plan.ByWorker },
			v1alpha1.ActuatorStatus{
				Type: v1alpha1.ActuatorDirect, Reason: "a function of the function worker has no scale subresource",
			},
		},
		"where KEDA would refuse": {
			func(w *plan.Observed) { w.OtherScaledObjects = []string{"theirs"} },
			v1alpha1.ActuatorStatus{
				Type:   v1alpha1.ActuatorDirect,
				Reason: reason + ": apply its APIService; KEDA already has ScaledObject theirs on the same target",
			},
		},
		"with the metrics API": {
			func(w *plan.Observed) { w.Capabilities.NoMetricsAPI = false },
			v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA, Reason: "custom.metrics.k8s.io is served by the adapter"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			w.Capabilities = able
			test.change(&w)
			require.Equal(t, test.want, w.Choose())
		})
	}
}

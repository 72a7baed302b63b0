// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
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

func TestTheScaledObjectReadsTheDecision(t *testing.T) {
	w := world()
	w.Policy.Spec.MinReplicas = new(int32)
	configuration := plan.ScaledObject(w.Policy, w.Target,
		plan.Scaler{Address: "scaler:9090", TLS: true, Authentication: "ca"})
	require.Equal(t, plan.AutoscalerName("resize"), configuration.Metadata.Labels["scaledobject.keda.sh/name"],
		"so that KEDA does not write it")
	text, err := json.Marshal(configuration.Spec)
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

func TestAnAutoscalerHasTheDirectionThatIsDisabled(t *testing.T) {
	selected := func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) [2]autoscalingv2.ScalingPolicySelect {
		return [2]autoscalingv2.ScalingPolicySelect{*b.ScaleUp.SelectPolicy, *b.ScaleDown.SelectPolicy}
	}
	limited := v1alpha1.ScaleUpRules{Policies: []v1alpha1.ScalingPolicy{{
		Type: v1alpha1.PodsScalingPolicy, Value: 1, PeriodSeconds: 60,
	}}}
	for name, test := range map[string]struct {
		behavior *v1alpha1.Behavior
		want     [2]autoscalingv2.ScalingPolicySelect
	}{
		"neither": {nil, [2]autoscalingv2.ScalingPolicySelect{"Max", "Max"}},
		"limits are of the decision": {
			&v1alpha1.Behavior{ScaleUp: &limited}, [2]autoscalingv2.ScalingPolicySelect{"Max", "Max"},
		},
		"up": {
			&v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled}},
			[2]autoscalingv2.ScalingPolicySelect{"Disabled", "Max"},
		},
		"down": {
			&v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{SelectPolicy: v1alpha1.SelectDisabled}},
			[2]autoscalingv2.ScalingPolicySelect{"Max", "Disabled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			w.Policy.Spec.Behavior = test.behavior
			hpa := plan.HorizontalPodAutoscaler(w.Policy, w.Target)
			require.Equal(t, test.want, selected(hpa.Spec.Behavior))
			require.Len(t, hpa.Spec.Behavior.ScaleUp.Policies, 1)
			require.Equal(t, int32(1), hpa.Spec.Behavior.ScaleUp.Policies[0].PeriodSeconds)
			object := plan.ScaledObject(w.Policy, w.Target, testScaler())
			require.Equal(t, test.want, selected(object.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior))
		})
	}
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
		"the controller wakes all that are needed":    {0, 4, changes{mayBeZero}, "status replicas=4 scaledobject(min 0)"},
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
		"a problem freezes":                   {3, 7, changes{violated(v1alpha1.ReasonConflictingAutoscaler)}, ""},
		"a policy that takes precedence":      {3, 7, changes{violated(v1alpha1.ReasonOlderPolicy)}, "remove gone"},
		"Recommend has none":                  {3, 7, changes{mode(v1alpha1.ModeRecommend)}, "remove gone"},
		"Off has none":                        {3, 7, changes{mode(v1alpha1.ModePaused)}, "remove gone"},
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

func TestChecksOfKEDA(t *testing.T) {
	named := func(o *plan.Observed) { o.Policy.Spec.Actuator = v1alpha1.ActuatorKEDA }
	auto := func(o *plan.Observed) {
		o.Policy.Spec.Actuator, o.Capabilities.NoMetricsAPI = v1alpha1.ActuatorAuto, true
	}
	stranger := func(o *plan.Observed) { o.ScaledObject.OwnerReferences = nil }
	other := func(o *plan.Observed) { o.OtherScaledObjects = []string{"theirs"} }
	recreated := func(o *plan.Observed) {
		o.Policy.UID = "recreated"
		o.Autoscaler, o.KEDAAutoscaler = o.KEDAAutoscaler, nil // of a ScaledObject that is not the policy's
	}
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
		"that of a deleted policy of this name": {
			changes{named, recreated}, v1alpha1.ReasonPending, "waiting until Kubernetes deletes ScaledObject",
		},
		"that of a deleted policy of this name, which KEDA does not finalize": {
			changes{named, recreated, func(o *plan.Observed) {
				o.ScaledObject.DeletionTimestamp = &metav1.Time{Time: o.Now.Add(-2 * time.Minute)}
			}},
			v1alpha1.ReasonScaledObjectStays, "finalizer.keda.sh",
		},
		"that of a deleted policy of this name, Auto": {
			changes{auto, recreated, func(o *plan.Observed) { o.OtherScaledObjects = []string{o.ScaledObject.Name} }},
			v1alpha1.ReasonPending, "waiting until Kubernetes deletes ScaledObject",
		},
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
			v := plan.Check(o.Subject, o.Autoscalers)
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
	const fix = ": see the log of the adapter, which needs deploy/rbac/certificate.yaml to write its APIService, " +
		"and --tls-ca-file with --serving-certificate=Files (the chart sets it)"
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
			v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: reason + fix},
		},
		"where KEDA would refuse": {
			func(w *plan.Observed) { w.OtherScaledObjects = []string{"theirs"} },
			v1alpha1.ActuatorStatus{
				Type:   v1alpha1.ActuatorDirect,
				Reason: reason + fix + "; KEDA already has ScaledObject theirs on the same target",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			w.Capabilities = able
			test.change(&w)
			require.Equal(t, test.want, plan.Choose(w.Subject, w.Autoscalers, w.Unset))
		})
	}
}

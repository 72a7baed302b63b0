// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// judgedPolicy is a policy with all conditions as they should be.
func judgedPolicy(changes ...func(*v1alpha1.AutoscalingPolicy)) v1alpha1.AutoscalingPolicy {
	p := scaledPolicy("resize")
	p.Generation = 1
	p.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "True", Reason: "Scaling", Message: "the target follows the decisions"},
		{Type: "ObjectiveMet", Status: "True", Reason: "WithinObjective", Message: "messages meet the latency objective"},
		{
			Type: "ScalingLimited", Status: "False", Reason: "DesiredWithinRange",
			Message: "no bound limits the desired replicas",
		},
		{
			Type: "TargetFound", Status: "True", Reason: "Found",
			Message: "Function resize exists and can be scaled",
		},
		{Type: "BacklogKnown", Status: "True", Reason: "Measured", Message: "Pulsar answers for every input topic"},
		{
			Type: "AutoscalerApplied", Status: "True", Reason: "Applied",
			Message: "HorizontalPodAutoscaler resize is up to date",
		},
		{
			Type: "ScalingActive", Status: "True", Reason: "ValidMetricFound",
			Message: "the HPA was able to calculate a replica count",
		},
		{
			Type: "SubscriptionVerified", Status: "True", Reason: "AsExpected",
			Message: `the broker reports subscription "public/default/resize" of type Shared`,
		},
		{
			Type: "ScalesWithoutRestart", Status: "True", Reason: "Undisturbed",
			Message: "a change of the number of replicas restarts none that run",
		},
		{
			Type: "ObjectiveAchievable", Status: "True", Reason: "Achievable",
			Message: "latencyObjective leaves time for new replicas to start",
		},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// functionWithQueues is a Function with a receive queue for each of its topics; 0 for one that is not set.
func functionWithQueues(sizes map[string]int) map[string]any {
	sources := map[string]any{}
	for topic, size := range sizes {
		sources[topic] = map[string]any{}
		if size > 0 {
			sources[topic] = map[string]any{"receiverQueueSize": size}
		}
	}
	return map[string]any{
		"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function",
		"metadata": map[string]any{"name": "resize", "namespace": "media"},
		"spec":     map[string]any{"input": map[string]any{"sourceSpecs": sources}},
	}
}

const functionPath = "/apis/compute.functionmesh.io/v1alpha1/namespaces/media/functions/resize"

func (s *apiServer) check(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	return kubectlPap(t, stdin, append([]string{"check", "-n", "media", "--server", s.url}, args...)...)
}

func TestCheckHasALineForEachCheck(t *testing.T) {
	server := newAPIServer(t, judgedPolicy())
	server.objects[apiServicesPath] = apiServices(adapterService(t, "v1beta1", 100), adapterService(t, "v1beta2", 200))
	server.objects[functionPath] = functionWithQueues(map[string]int{"in": 0})
	out, err := server.check(t, "", "resize")
	require.NoError(t, err)
	require.Equal(t, `POLICY        media/resize
  ok          metrics API: Service pulsar-autoscaler/adapter serves
              v1beta2.custom.metrics.k8s.io
  ok          certificate: the authority in caBundle is valid until
              2126-01-01T00:00:00Z
  ok          rights: ServiceAccount pulsar-autoscaler/adapter has the rights
              that are checked in namespace media
  ok          adapter: it has read generation 1 of the policy
  ok          target: Function resize exists and can be scaled
  ok          restarts: a change of the number of replicas restarts none that
              run
  ok          autoscalers: HorizontalPodAutoscaler resize is up to date
  ok          scaling: the HPA was able to calculate a replica count
  ok          pulsar: it answers
  ok          credentials: Pulsar accepts them, and their role may read the
              topics
  ok          topics: Pulsar answers for every input topic
  ok          subscription: the broker reports subscription
              "public/default/resize" of type Shared
  ok          partitions: the subscription type does not limit the replicas to
              their number
  ok          limits: no bound limits the desired replicas
  ok          start time: latencyObjective leaves time for new replicas to start
  ok          replicas: the target follows the decisions
  ok          objective: messages meet the latency objective
  ok          receive queue: receiverQueueSize 1000, the largest of the target,
              is 16s of a replica's work for each partition, and
              latencyObjective is 30s

RESULT        ok 18, warning 0, error 0, unknown 0
`, out)
	require.Equal(t, []string{
		"system:serviceaccount:pulsar-autoscaler:adapter media patch functions/scale",
		"system:serviceaccount:pulsar-autoscaler:adapter media create horizontalpodautoscalers",
	}, server.reviewed)
}

func TestCheckNamesThePermissionThatAViewerLacks(t *testing.T) {
	server := newAPIServer(t, judgedPolicy())
	server.noReviews = true
	out, err := server.check(t, "", "resize")
	require.NoError(t, err, "what is unknown is no error")
	require.Contains(t, out, `
  unknown     metrics API: your user needs list on
              apiservices.apiregistration.k8s.io
  unknown     rights: your user needs create on
              localsubjectaccessreviews.authorization.k8s.io in namespace media
`)
	require.Contains(t, out, `
  unknown     receive queue: your user needs get on
              functions.compute.functionmesh.io in namespace media

RESULT        ok 14, warning 0, error 0, unknown 3
`)
}

func TestTheMetricsAPIIsCheckedForHorizontalPodAutoscalersAlone(t *testing.T) {
	actuator := func(a v1alpha1.Actuator) func(*v1alpha1.AutoscalingPolicy) {
		return func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = a }
	}
	for name, test := range map[string]struct {
		edit   func(*v1alpha1.AutoscalingPolicy)
		result checkResult
	}{
		"by default": {actuator(""), resultWarning},
		"Auto":       {actuator(v1alpha1.ActuatorAuto), resultWarning},
		"HPA":        {actuator(v1alpha1.ActuatorHPA), resultError},
		"HPA in mode Recommend": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Spec.Actuator, p.Spec.Mode = v1alpha1.ActuatorHPA, v1alpha1.ModeRecommend
		}, resultWarning},
		"Direct": {actuator(v1alpha1.ActuatorDirect), ""},
		"KEDA":   {actuator(v1alpha1.ActuatorKEDA), ""},
		"a function of a worker": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Spec.ScaleTargetRef, p.Spec.PulsarFunctionRef.Name = v1alpha1.ScaleTargetRef{}, "resize"
		}, ""},
		"a component of a FunctionMesh": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Spec.ScaleTargetRef.Kind, p.Spec.ScaleTargetRef.Component.Name = "FunctionMesh", "resize"
		}, ""},
	} {
		for who, services := range map[string]apiregistrationv1.APIServiceList{
			"no APIService":       apiServices(),
			"Service another/one": apiServices(apiService("another", "one", "v1beta1", 1, nil)),
		} {
			t.Run(name+" with "+who, func(t *testing.T) {
				server := newAPIServer(t, judgedPolicy(test.edit))
				server.objects[apiServicesPath] = services
				out, err := server.check(t, "", "resize")
				require.Equal(t, test.result == resultError, err != nil, "%v", err)
				require.Equal(t, test.result != "", strings.Contains(out, "metrics API"), out)
				if test.result != "" {
					require.Contains(t, flat(out), string(test.result)+" metrics API: "+who+" serves custom.metrics.k8s.io, so ")
				}
				require.Equal(t, strings.HasPrefix(name, "HPA"), strings.Contains(flat(out), "set actuator Auto or Direct"), out)
			})
		}
	}
}

func TestARightThatAPolicyMayDoWithoutIsNoError(t *testing.T) {
	server := newAPIServer(t, judgedPolicy(func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.ConflictPolicy, p.Spec.Pulsar = v1alpha1.ConflictTakeOver, &v1alpha1.PulsarConnection{AuthSecret: "pulsar"}
	}))
	server.denied = []string{"patch functions", "get secrets"}
	out, err := server.check(t, "", "resize")
	require.NoError(t, err)
	require.Contains(t, flat(out), "warning rights: ServiceAccount pulsar-autoscaler/adapter may not patch functions "+
		"(set rbac.takeOver of the chart, or apply deploy/rbac/takeover.yaml, if it has to take over maxReplicas or a "+
		"ScaledObject: the policy does not scale beside one), nor get secrets (set rbac.secrets of the chart, "+
		"or apply deploy/rbac/secrets.yaml; until then it "+
		"uses its own credentials, if it has any) in namespace media;")
}

func TestCheckWritesJSONAndFailsWithAnError(t *testing.T) {
	const fix = "permission missing: topic in: grant consume on namespace public/default to the role of the credentials"
	server := newAPIServer(t, judgedPolicy(setCondition("BacklogKnown", "False", "PermissionMissing", fix)))
	server.denied = []string{"patch functions/scale"}
	var list checklist
	out, err := server.check(t, "", "resize", "-o", "json")
	require.EqualError(t, err, "2 of 17 checks found an error")
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Contains(t, list.Checks, checked{"credentials", "error", "PermissionMissing", fix})
	require.Contains(t, list.Checks, checked{"rights", "error", "", "ServiceAccount pulsar-autoscaler/adapter may not " +
		"patch functions/scale (upgrade the chart, or apply deploy/rbac/clusterrole.yaml) in namespace media; " +
		"--adapter-namespace names another adapter, and -n one namespace in which it works"})
}

const policyFile = `apiVersion: pulsar-autoscaler.io/v1alpha1
kind: AutoscalingPolicy
metadata: {name: thumbs, namespace: media}
spec:
  scaleTargetRef: {apiVersion: compute.functionmesh.io/v1alpha1, kind: Function, name: media-thumbs}
  maxReplicas: 20
`

func writePolicyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(path, []byte(policyFile), 0o600))
	return path
}

func TestCheckTriesAPolicyOutInModeRecommend(t *testing.T) {
	const conflict = "mode is Recommend: no HorizontalPodAutoscaler is created; in mode Auto the policy would not scale: " +
		"HorizontalPodAutoscaler by-hand scales Function thumbs: delete it"
	server := newAPIServer(t)
	var mode v1alpha1.Mode
	server.verdict = func(p *v1alpha1.AutoscalingPolicy) {
		mode = p.Spec.Mode
		p.Status = judgedPolicy(setCondition("AutoscalerApplied", "True", "ConflictingAutoscaler", conflict)).Status
	}
	for answer, created := range map[string]bool{"n\n": false, "": false, "y\n": true} {
		server.written = nil
		out, err := server.check(t, answer, "-f", writePolicyFile(t))
		if !created {
			require.EqualError(t, err, "nothing was created: answer y, or set --yes")
			require.Empty(t, server.written)
			continue
		}
		require.EqualError(t, err, "1 of 17 checks found an error", "the file has mode Auto")
		require.Equal(t, v1alpha1.ModeRecommend, mode)
		require.Contains(t, flat(out), "error autoscalers: "+conflict)
		const path = "/apis/pulsar-autoscaler.io/v1alpha1/namespaces/media/autoscalingpolicies"
		require.Equal(t, []string{"POST " + path, "DELETE " + path + "/thumbs"}, server.written)
	}
}

func TestCheckCreatesNoSecondPolicyOfATarget(t *testing.T) {
	for name, test := range map[string]struct {
		ref     v1alpha1.ScaleTargetRef
		refused bool
	}{
		"the same Function": {
			v1alpha1.ScaleTargetRef{APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "media-thumbs"},
			true,
		},
		"another version of its API": {
			v1alpha1.ScaleTargetRef{APIVersion: "compute.functionmesh.io/v1", Kind: "Function", Name: "media-thumbs"}, true,
		},
		"another kind of this name": {
			v1alpha1.ScaleTargetRef{APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Sink", Name: "media-thumbs"},
			false,
		},
		"the entry of a FunctionMesh that creates it": {
			v1alpha1.ScaleTargetRef{
				APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "media",
				Component: v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "thumbs"},
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			existing := judgedPolicy(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ScaleTargetRef = test.ref })
			server := newAPIServer(t, existing)
			server.readOnly = true
			_, err := server.check(t, "", "-f", writePolicyFile(t), "--yes")
			if test.refused {
				require.ErrorContains(t, err, "run kubectl pap check resize -n media")
				require.NotContains(t, err.Error(), "creating")
			} else {
				require.ErrorContains(t, err, "creating policy media/thumbs")
			}
		})
	}
}

func TestCheckDeletesThePolicyThatTheAdapterDoesNotRead(t *testing.T) {
	server := newAPIServer(t)
	server.verdict = func(p *v1alpha1.AutoscalingPolicy) {
		p.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: "Unknown", Reason: "Pending", Message: "the adapter has not read this object yet",
		}}
	}
	out, err := server.check(t, "", "-f", writePolicyFile(t), "--yes", "--timeout", "1ms")
	require.EqualError(t, err, "1 of 3 checks found an error")
	require.Contains(t, out, "\n  error       adapter: the ")
	require.Contains(t, out, "--install\n")
	require.Len(t, server.written, 2)
}

func TestCheckDoesNotDeleteThePolicyThatReplacedItsOwn(t *testing.T) {
	server := newAPIServer(t)
	server.verdict = func(p *v1alpha1.AutoscalingPolicy) { p.UID, p.Status = "uid-2", judgedPolicy().Status }
	_, err := server.check(t, "", "-f", writePolicyFile(t), "--yes")
	require.EqualError(t, err, "waiting for the adapter: another policy has replaced the one of this check")
	require.Len(t, server.list.Items, 1, "the other policy stays")
}

func TestCheckNamesTheRoleThatMayCreateAPolicy(t *testing.T) {
	server := newAPIServer(t)
	server.readOnly = true
	_, err := server.check(t, "", "-f", writePolicyFile(t), "--yes")
	require.ErrorContains(t, err, "creating policy media/thumbs: ")
	require.ErrorContains(t, err, "bind the ClusterRole edit, or pulsar-autoscaler-edit, to your user")
}

func TestCheckRefusesWrongArguments(t *testing.T) {
	for _, test := range []struct {
		want string
		args []string
	}{
		{"set one of the name of a policy, -f and --install", nil},
		{"set one of the name of a policy, -f and --install", []string{"resize", "--install"}},
		{"set --yes", []string{"-f", "-"}},
		{"--timeout is 0s", []string{"resize", "--timeout", "0s"}},
	} {
		_, err := kubectlPap(t, "", append([]string{"check"}, test.args...)...)
		require.ErrorContains(t, err, test.want)
	}
}

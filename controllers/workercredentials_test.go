// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testSecret holds a token, or nothing.
func testSecret(name string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name},
		Data:       map[string][]byte{},
	}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

// A user who may create policies in a namespace must not use the adapter's permissions through them.
func TestAFunctionWorkerReceivesNoCredentialsOfTheAdapter(t *testing.T) {
	token := testSecret(
		"token",
		map[string]string{
			"clientAuthenticationPlugin":     fixture.TokenPlugin,
			"clientAuthenticationParameters": "token:hunter2",
		},
	)
	tests := map[string]struct {
		own     target.OwnCredentials
		mode    target.FunctionCredentials
		workers target.WorkerCredentials
		secret  string
		refused string
	}{
		"neither has any": {},
		"the adapter has none but knows certificates": {own: target.OwnCredentials{TrustsMore: true}},
		"the adapter has some, the policy has none": {
			own: target.OwnCredentials{Authenticates: true},
			refused: "the adapter does not use its own credentials to change what function workers run " +
				"(--worker-credentials=Policy): set spec.pulsar.authSecret to a " +
				"Secret that the adapter may read, with credentials that may change public/default/resize, or run the adapter " +
				"with --worker-credentials=Own (in adapter.extraArgs of the chart)",
		},
		"both have some": {own: target.OwnCredentials{Authenticates: true}, secret: "token"},
		"the policy's Secret is empty": {
			own: target.OwnCredentials{Authenticates: true}, secret: "empty",
			refused: "--worker-credentials=Policy",
		},
		"the policy's Secret is empty, and neither has any": {secret: "empty"},
		"the platform allows the adapter's": {
			own:     target.OwnCredentials{Authenticates: true},
			workers: target.OwnWorkerCredentials,
		},
		"the adapter's are for everything": {
			own: target.OwnCredentials{Authenticates: true}, mode: target.IgnoreFunctionCredentials,
			refused: "with --function-credentials=Ignore there are no others: run the adapter with --worker-credentials=Own",
		},
		"the adapter's are for everything, workers too": {
			own: target.OwnCredentials{
				Authenticates: true,
			}, mode: target.IgnoreFunctionCredentials, workers: target.OwnWorkerCredentials,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := fixture.WorkerPolicy()
			p.Spec.Pulsar.AuthSecret = test.secret
			env := newWorkerEnv(t, p, token, testSecret("empty", nil))
			env.configure = func(c *target.Config) {
				c.OwnCredentials, c.WorkerCredentials = test.own, test.workers
				if test.mode != "" {
					c.FunctionCredentials = test.mode
				}
			}
			env.restart()
			env.reconcile()
			status, message := env.condition(v1alpha1.ConditionTargetFound)
			if test.refused == "" {
				require.Equal(t, "True/Found", status, message)
				require.NotZero(t, env.worker.Described)
				return
			}
			require.Equal(t, "False/"+v1alpha1.ReasonCredentialsMissing, status)
			require.Contains(t, message, test.refused)
			require.Zero(t, env.worker.Described, "it is not even shown them")
			require.Empty(t, env.worker.Updates)
		})
	}
}

// Otherwise any tenant could block the policies of others.
func TestAPolicyThatMayNotScaleAFunctionBlocksNoOther(t *testing.T) {
	older := fixture.WorkerPolicy()
	older.Namespace, older.Name, older.UID = "other", "first", "uid-first"
	older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
	tests := map[string]struct {
		found     metav1.ConditionStatus
		namespace string
		want      string
	}{
		"refused": {found: metav1.ConditionFalse, namespace: "other", want: "True/Direct"},
		"refused, of the same namespace": {
			found: metav1.ConditionFalse, namespace: fixture.Namespace,
			want: "False/OlderPolicy",
		},
		"found":           {found: metav1.ConditionTrue, namespace: "other", want: "False/OlderPolicy"},
		"not checked yet": {namespace: "other", want: "False/OlderPolicy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			older := older.DeepCopy()
			older.Namespace = test.namespace
			if test.found != "" {
				older.Status.Conditions = []metav1.Condition{{
					Type: v1alpha1.ConditionTargetFound, Status: test.found,
					Reason: "Some",
				}}
			}
			env := newWorkerEnv(t, fixture.WorkerPolicy(), older)
			env.firstDecision(700)
			status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.want, status, message)
		})
	}
}

// A policy that names the admin URL of another tenant's Pulsar and a worker of its own scales nothing of that tenant.
func TestAPolicyOfAnotherWorkerBlocksNoneOfAnotherNamespace(t *testing.T) {
	const worker, elsewhere = "http://worker.pulsar:6750", "http://worker.other:6750"
	tests := map[string]struct {
		older, ours func(*v1alpha1.AutoscalingPolicy)
		namespace   string
		want        string
	}{
		"a worker of its own": {
			older: func(p *v1alpha1.AutoscalingPolicy) { p.Spec.PulsarFunctionRef.WorkerURL = elsewhere },
			want:  "True/Direct",
		},
		"a worker of its own, of the same namespace": {
			older:     func(p *v1alpha1.AutoscalingPolicy) { p.Spec.PulsarFunctionRef.WorkerURL = elsewhere },
			namespace: fixture.Namespace, want: "False/OlderPolicy",
		},
		"the admin URL as worker": {
			older: func(p *v1alpha1.AutoscalingPolicy) { p.Spec.PulsarFunctionRef.WorkerURL = p.Spec.Pulsar.AdminURL + "/" },
			want:  "False/OlderPolicy",
		},
		"the same worker, another admin URL": {
			older: func(p *v1alpha1.AutoscalingPolicy) {
				p.Spec.PulsarFunctionRef.WorkerURL, p.Spec.Pulsar.AdminURL = worker, "http://elsewhere:8080"
			},
			ours: func(p *v1alpha1.AutoscalingPolicy) { p.Spec.PulsarFunctionRef.WorkerURL = worker + "/" },
			want: "False/OlderPolicy",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			older, ours := fixture.WorkerPolicy(), fixture.WorkerPolicy()
			older.Namespace, older.Name, older.UID = cmp.Or(test.namespace, "other"), "first", "uid-first"
			older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
			older.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionTargetFound, Status: metav1.ConditionTrue, Reason: "Found",
			}}
			test.older(older)
			if test.ours != nil {
				test.ours(ours)
			}
			env := newWorkerEnv(t, ours, older)
			env.firstDecision(700)
			status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.want, status, message)
		})
	}
}

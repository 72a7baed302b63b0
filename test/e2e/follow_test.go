// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// refuseScaling makes the API server reject writes of a Function's scale subresource until the test ends.
func refuseScaling(t *testing.T, name string) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-scaling-" + name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{name},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{mesh.GroupVersion().Group}, APIVersions: []string{"*"},
						Resources: []string{"functions/scale"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "scaling is refused"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		create(t, object)
	}
}

func TestNotFollowedIsToldOfAnHPAThatMayNotScale(t *testing.T) {
	t.Parallel()
	const name = "unscaled"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Objective: objective})
	refuseScaling(t, name)
	addPolicy(t, newPolicy(name))
	publish(t, f, load.Constant(60)) // 25/s each
	said := f.AwaitConditions(t, "Ready=False/NotFollowed")
	require.Contains(t, said, "does not set the decided replicas (FailedUpdateScale)")
	f.AwaitPolicy(t, "more desired than set", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.DesiredReplicas != nil && p.Status.SpecReplicas != nil &&
			*p.Status.DesiredReplicas > *p.Status.SpecReplicas
	})
	f.AwaitConditions(t, "Ready=False/NotFollowed", "ObjectiveMet=False/NotFollowed")
	awaitAlert(t, f, "PulsarAutoscalerNotFollowed", true)
}

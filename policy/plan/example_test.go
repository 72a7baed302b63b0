// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// A policy with a missing target: the problem has the condition to report and the fix.
func ExampleCheck() {
	p := &v1alpha1.AutoscalingPolicy{}
	p.Namespace, p.Name = "media", "resize"
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "resize",
	}
	problem := plan.Check(plan.Subject{Policy: p}, plan.Autoscalers{})
	fmt.Println(problem.Condition, problem.Reason)
	fmt.Println(problem.Message)

	// Output:
	// TargetFound TargetNotFound
	// Function resize does not exist in namespace media: create it or correct spec.scaleTargetRef
}

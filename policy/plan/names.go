// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Name is what the policy scales, in a sentence: Function resize, Function resize of FunctionMesh etl, or function
// public/default/resize of the function worker.
func Name(spec v1alpha1.AutoscalingPolicySpec) string {
	switch ref, ours := spec.ScaleTargetRef, spec.PulsarFunctionRef; {
	case ours.Name != "":
		return fmt.Sprintf("%s %s of the function worker", strings.ToLower(string(ours.Kind)), ours.FullName())
	case ref.Component.Name != "":
		return fmt.Sprintf("%s %s of FunctionMesh %s", ref.Component.Kind, ref.Component.Name, ref.Name)
	default:
		return ref.Kind + " " + ref.Name
	}
}

// ShortName is what the policy scales, in a column: Function/resize, FunctionMesh/etl:Function/resize or
// function:public/default/resize.
func ShortName(spec v1alpha1.AutoscalingPolicySpec) string {
	switch ref, ours := spec.ScaleTargetRef, spec.PulsarFunctionRef; {
	case ours.Name != "":
		return strings.ToLower(string(ours.Kind)) + ":" + ours.FullName()
	case ref.Component.Name != "":
		return fmt.Sprintf("%s/%s:%s/%s", ref.Kind, ref.Name, ref.Component.Kind, ref.Component.Name)
	default:
		return ref.Kind + "/" + ref.Name
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const oneTarget = "exactly one of scaleTargetRef and pulsarFunctionRef must be set"

func component(kind, name string) fields { return fields{"kind": kind, "name": name} }

func meshTarget(more fields) fields {
	return merge(fields{
		"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "FunctionMesh", "name": "etl", "component": component(
			"Function", "resize"),
	}, more)
}

func workerPolicy(ref, more fields) fields {
	return merge(fields{"pulsarFunctionRef": merge(fields{"name": "resize"}, ref), "maxReplicas": int64(5)}, more)
}

func TestAPolicyHasExactlyOneTarget(t *testing.T) {
	worker := fields{"name": "resize"}
	try(t, map[string]attempt{
		"an object alone":                   {functionPolicy(nil), ""},
		"a function of a worker alone":      {workerPolicy(nil, nil), ""},
		"no target":                         {fields{"maxReplicas": int64(5)}, oneTarget},
		"an object and a worker's function": {functionPolicy(fields{"pulsarFunctionRef": worker}), oneTarget},
	})
}

func TestObjectTargetsAreNamedWhole(t *testing.T) {
	const only = "component must be set with kind FunctionMesh, and only then"
	ref := func(more fields) fields { return functionPolicy(fields{"scaleTargetRef": merge(function(), more)}) }
	ofMesh := func(more fields) fields { return functionPolicy(fields{"scaleTargetRef": meshTarget(more)}) }
	try(t, map[string]attempt{
		"without apiVersion":          {ref(fields{"apiVersion": nil}), "spec.scaleTargetRef.apiVersion: Required value"},
		"without kind":                {ref(fields{"kind": nil}), "spec.scaleTargetRef.kind: Required value"},
		"without name":                {ref(fields{"name": nil}), "spec.scaleTargetRef.name: Required value"},
		"with an empty apiVersion":    {ref(fields{"apiVersion": ""}), "should be at least 1 chars long"},
		"with an empty kind":          {ref(fields{"kind": ""}), "should be at least 1 chars long"},
		"with an empty name":          {ref(fields{"name": ""}), "should be at least 1 chars long"},
		"with an apiVersion too long": {ref(fields{"apiVersion": strings.Repeat("a", 254)}), "may not be more than 253"},
		"with a kind too long":        {ref(fields{"kind": strings.Repeat("a", 64)}), "may not be more than 63"},
		"with a name too long":        {ref(fields{"name": strings.Repeat("a", 254)}), "may not be more than 253"},
		"a component of a mesh":       {ofMesh(nil), ""},
		"a sink of a mesh":            {ofMesh(fields{"component": component("Sink", "s3")}), ""},
		"a source of a mesh":          {ofMesh(fields{"component": component("Source", "crawl")}), ""},
		"a mesh as a whole":           {ofMesh(fields{"component": nil}), only},
		"a component of a Function":   {ref(fields{"component": component("Function", "resize")}), only},
		"a component of unknown kind": {
			ofMesh(fields{"component": component("Job", "resize")}),
			`Unsupported value: "Job"`,
		},
		"a component without kind": {
			ofMesh(fields{"component": fields{"name": "resize"}}),
			"component.kind: Required value",
		},
		"a component without name": {
			ofMesh(fields{"component": fields{"kind": "Sink"}}),
			"component.name: Required value",
		},
		"a component with an empty name": {
			ofMesh(fields{"component": component("Sink", "")}),
			"should be at least 1 chars long",
		},
		"a component's name too long": {
			ofMesh(fields{"component": component("Sink", strings.Repeat("a", 254))}),
			"may not be more than 253",
		},
		"a StatefulSet of a worker": {functionPolicy(fields{"scaleTargetRef": fields{
			"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "pf-public-default-resize",
		}}), ""},
	})
}

func TestFunctionsOfAWorkerAreNamedInPulsarsWords(t *testing.T) {
	const url = "workerURL must be http://host:port or https://host:port, one host, with no path and no credentials"
	const instances = "minReplicas must be at least 1 with pulsarFunctionRef: the function worker does not run a " +
		"function with no instance"
	try(t, map[string]attempt{
		"a source in full": {workerPolicy(fields{
			"kind": "Source", "tenant": "shop", "namespace": "orders", "workerURL": "https://worker.pulsar:6751/",
		}, nil), ""},
		"without a name": {
			fields{"pulsarFunctionRef": fields{"tenant": "shop"}, "maxReplicas": int64(5)},
			"pulsarFunctionRef.name: Required value",
		},
		"with an empty name":      {workerPolicy(fields{"name": ""}, nil), "should be at least 1 chars long"},
		"with an empty tenant":    {workerPolicy(fields{"tenant": ""}, nil), "should be at least 1 chars long"},
		"with an empty namespace": {workerPolicy(fields{"namespace": ""}, nil), "should be at least 1 chars long"},
		"with a name too long": {
			workerPolicy(fields{"name": strings.Repeat("a", 254)}, nil),
			"may not be more than 253",
		},
		"with a tenant too long": {
			workerPolicy(fields{"tenant": strings.Repeat("a", 254)}, nil),
			"may not be more than 253",
		},
		"with a namespace too long": {
			workerPolicy(fields{"namespace": strings.Repeat("a", 254)}, nil),
			"may not be more than 253",
		},
		"of an unknown kind": {
			workerPolicy(fields{"kind": "FunctionMesh"}, nil),
			`Unsupported value: "FunctionMesh"`,
		},
		"a worker by host alone":     {workerPolicy(fields{"workerURL": "worker:6750"}, nil), url},
		"a worker with a path":       {workerPolicy(fields{"workerURL": "http://worker:6750/admin"}, nil), url},
		"a worker with a password":   {workerPolicy(fields{"workerURL": "http://me:secret@worker:6750"}, nil), url},
		"a worker by another scheme": {workerPolicy(fields{"workerURL": "pulsar://worker:6650"}, nil), url},
		"a worker's URL too long": {
			workerPolicy(fields{"workerURL": "http://" + strings.Repeat("w", 2048)}, nil),
			"may not be more than 2048",
		},
		"an empty worker's URL": {workerPolicy(fields{"workerURL": ""}, nil), ""},
		"no instance":           {workerPolicy(nil, fields{"minReplicas": int64(0)}), instances},
		"one instance":          {workerPolicy(nil, fields{"minReplicas": int64(1)}), ""},
	})
}

// TestAutoscalersNeedAScaleSubresource: the controller writes the replicas of what has none.
func TestAutoscalersNeedAScaleSubresource(t *testing.T) {
	const direct = "actuator must be Auto or Direct for a component of a FunctionMesh and with pulsarFunctionRef: " +
		"these have no scale subresource for an autoscaler"
	component := func(actuator string) fields {
		return functionPolicy(fields{"scaleTargetRef": meshTarget(nil), "actuator": actuator})
	}
	ofWorker := func(actuator string) fields { return workerPolicy(nil, fields{"actuator": actuator}) }
	try(t, map[string]attempt{
		"a component with HPA":             {component("HPA"), direct},
		"a component with KEDA":            {component("KEDA"), direct},
		"a component with Direct":          {component("Direct"), ""},
		"a component with Auto":            {component("Auto"), ""},
		"a function of a worker with HPA":  {ofWorker("HPA"), direct},
		"a function of a worker with KEDA": {ofWorker("KEDA"), direct},
		"a function of a worker with Auto": {ofWorker("Auto"), ""},
	})
}

// TestTargetsCannotBeChanged: what was learned belongs to the target, and two autoscalers would meet on the new one.
func TestTargetsCannotBeChanged(t *testing.T) {
	onControlPlane(t)
	const formKept = "the target cannot be changed; create another policy and delete this one"
	const objectKept = "scaleTargetRef cannot be changed; create another policy and delete this one"
	const workerKept = "pulsarFunctionRef cannot be changed; create another policy and delete this one"
	tests := map[string]struct {
		from fields
		set  fields
		want string
	}{
		"another name": {
			functionPolicy(nil),
			fields{"scaleTargetRef": merge(function(), fields{"name": "crop"})},
			objectKept,
		},
		"another kind": {
			functionPolicy(nil),
			fields{"scaleTargetRef": merge(function(), fields{"kind": "Sink"})},
			objectKept,
		},
		"another component": {
			functionPolicy(fields{"scaleTargetRef": meshTarget(nil)}),
			fields{"scaleTargetRef": meshTarget(fields{"component": component("Sink", "resize")})},
			objectKept,
		},
		"another function of a worker": {
			workerPolicy(nil, nil),
			fields{"pulsarFunctionRef": fields{"name": "crop"}},
			workerKept,
		},
		"another tenant": {
			workerPolicy(nil, nil),
			fields{"pulsarFunctionRef": fields{"name": "resize", "tenant": "shop"}},
			workerKept,
		},
		"an object to a worker's": {
			functionPolicy(nil),
			fields{"scaleTargetRef": nil, "pulsarFunctionRef": fields{"name": "resize"}},
			formKept,
		},
		"a worker's to an object": {
			workerPolicy(nil, nil),
			fields{"pulsarFunctionRef": nil, "scaleTargetRef": function()},
			formKept,
		},
		"a default that is said": {
			workerPolicy(nil, nil),
			fields{"pulsarFunctionRef": fields{"name": "resize", "tenant": "public"}},
			"",
		},
		"everything else": {functionPolicy(nil), fields{
			"maxReplicas": int64(50), "minReplicas": int64(0), "mode": "Paused", "actuator": "Direct", "conflictPolicy": "TakeOver",
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := create(t, "settled-on", test.from)
			after := before.DeepCopy()
			spec, _, err := unstructured.NestedMap(after.Object, "spec")
			require.NoError(t, err)
			after.Object["spec"] = merge(spec, test.set)
			err = people.Update(t.Context(), after, client.DryRunAll)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

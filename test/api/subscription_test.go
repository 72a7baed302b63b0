// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deployment is a target that does not say what it consumes.
func deployment() fields {
	return fields{"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}
}

// consumer is the policy of a Deployment, with some fields of its subscription changed, and some of the spec.
func consumer(subscription, more fields) fields {
	return merge(fields{
		"scaleTargetRef": deployment(), "maxReplicas": int64(5),
		"subscription": merge(fields{"topics": []any{"shop/orders/new"}, "name": "billing"}, subscription),
	}, more)
}

func TestKindsThatDoNotSayWhatTheyConsumeNeedASubscription(t *testing.T) {
	const only = "kind must be Function, Sink, Source or FunctionMesh of compute.functionmesh.io/v1alpha1, or " +
		"StatefulSet of apps/v1; for any other object set spec.subscription"
	const apps = "group apps has kinds Deployment, StatefulSet and ReplicaSet to scale, of version apps/v1"
	const mesh = "group compute.functionmesh.io has kinds Function, Sink, Source and FunctionMesh to scale"
	ref := func(apiVersion, kind string) fields {
		return fields{"scaleTargetRef": fields{"apiVersion": apiVersion, "kind": kind, "name": "orders"}}
	}
	const functionMesh, rollouts = "compute.functionmesh.io/v1alpha1", "argoproj.io/v1alpha1"
	try(t, map[string]attempt{
		"a misspelt Function":                {functionPolicy(ref(functionMesh, "Funktion")), only},
		"a Function of another version":      {functionPolicy(ref("compute.functionmesh.io/v1", "Function")), only},
		"a Function of another group":        {functionPolicy(ref("fission.io/v1", "Function")), only},
		"a Deployment":                       {functionPolicy(ref("apps/v1", "Deployment")), only},
		"a Rollout":                          {functionPolicy(ref(rollouts, "Rollout")), only},
		"a StatefulSet of another version":   {functionPolicy(ref("apps/v1beta1", "StatefulSet")), only},
		"a Deployment with a subscription":   {consumer(nil, nil), ""},
		"a StatefulSet with a subscription":  {consumer(nil, ref("apps/v1", "StatefulSet")), ""},
		"a Rollout with a subscription":      {consumer(nil, ref(rollouts, "Rollout")), ""},
		"a Function with a subscription":     {consumer(nil, ref(functionMesh, "Function")), ""},
		"a DaemonSet with a subscription":    {consumer(nil, ref("apps/v1", "DaemonSet")), apps},
		"an old Deployment, and what it has": {consumer(nil, ref("apps/v1beta2", "Deployment")), apps},
		"a Deployment of Function Mesh":      {consumer(nil, ref(functionMesh, "Deployment")), mesh},
	})
}

func TestSubscriptionsAreNamedWhole(t *testing.T) {
	const one = "exactly one of topics and topicsPattern must be set"
	const topic = "a topic must be persistent://tenant/namespace/topic, topic://tenant/namespace/topic or tenant/namespace/topic"
	const pattern = "topicsPattern must be persistent://tenant/namespace/expression, with no slash within the expression"
	topics := func(names ...string) fields {
		var list []any
		for _, name := range names {
			list = append(list, name)
		}
		return fields{"topics": list}
	}
	matching := func(expression string) fields { return fields{"topics": nil, "topicsPattern": expression} }
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("shop/orders/topic-%d", i))
	}
	long := "shop/orders/" + strings.Repeat("t", 1012)
	try(t, map[string]attempt{
		"a topic with its domain":         {consumer(topics("persistent://shop/orders/new"), nil), ""},
		"a scalable topic":                {consumer(topics("topic://shop/orders/new"), nil), ""},
		"a hundred topics":                {consumer(topics(many[:100]...), nil), ""},
		"a topic of the largest length":   {consumer(topics(long), nil), ""},
		"a pattern":                       {consumer(matching("persistent://shop/orders/eu-.*"), nil), ""},
		"a pattern without a domain":      {consumer(matching("shop/orders/(eu|us)-[a-z]+"), nil), ""},
		"neither topics nor a pattern":    {consumer(fields{"topics": nil}, nil), one},
		"topics and a pattern":            {consumer(fields{"topicsPattern": "shop/orders/.*"}, nil), one},
		"no topic":                        {consumer(fields{"topics": []any{}}, nil), "should have at least 1 items"},
		"too many topics":                 {consumer(topics(many...), nil), "must have at most 100 items"},
		"a topic twice":                   {consumer(topics("a/b/c", "a/b/c"), nil), "Duplicate value"},
		"a topic too long":                {consumer(topics(long+"t"), nil), "may not be more than 1024"},
		"a short topic":                   {consumer(topics("new"), nil), topic},
		"a topic of an old form":          {consumer(topics("shop/standalone/orders/new"), nil), topic},
		"a topic that keeps no backlog":   {consumer(topics("non-persistent://shop/orders/new"), nil), topic},
		"a topic with a blank":            {consumer(topics("shop/orders/new "), nil), topic},
		"a pattern of namespaces":         {consumer(matching("shop/.*/new"), nil), pattern},
		"a short pattern":                 {consumer(matching("eu-.*"), nil), pattern},
		"an empty pattern":                {consumer(matching(""), nil), pattern},
		"without a name":                  {consumer(fields{"name": nil}, nil), "subscription.name: Required value"},
		"with an empty name":              {consumer(fields{"name": ""}, nil), "should be at least 1 chars long"},
		"with a name too long":            {consumer(fields{"name": strings.Repeat("n", 254)}, nil), "not be more than 253"},
		"of a type by Kubernetes' habit":  {consumer(fields{"type": "KeyShared"}, nil), `Unsupported value: "KeyShared"`},
		"of Key_Shared":                   {consumer(fields{"type": "Key_Shared"}, nil), ""},
		"of Stream":                       {consumer(fields{"type": "Stream"}, nil), ""},
		"of Failover":                     {consumer(fields{"type": "Failover"}, nil), ""},
		"with no consumer for a replica":  {consumer(fields{"consumersPerReplica": int64(0)}, nil), "than or equal to 1"},
		"with 1001 consumers per replica": {consumer(fields{"consumersPerReplica": int64(1001)}, nil), "or equal to 1000"},
	})
}

func TestAnExclusiveSubscriptionHasOneReplica(t *testing.T) {
	const one = "maxReplicas must be 1 with subscription type Exclusive, which lets one consumer connect"
	exclusive := fields{"type": "Exclusive"}
	try(t, map[string]attempt{
		"up to one":  {consumer(exclusive, fields{"minReplicas": int64(0), "maxReplicas": int64(1)}), ""},
		"up to five": {consumer(exclusive, nil), one},
	})
}

func TestTargetsThatSayWhatTheyConsumeHaveNoSubscription(t *testing.T) {
	const elsewhere = "subscription must be set with scaleTargetRef, and only then"
	const entry = "subscription cannot be set with component"
	with := fields{"subscription": fields{"topics": []any{"shop/orders/new"}, "name": "billing"}}
	try(t, map[string]attempt{
		"a function of a worker": {workerPolicy(nil, with), elsewhere},
		"a component of a mesh":  {functionPolicy(merge(fields{"scaleTargetRef": meshTarget(nil)}, with)), entry},
	})
}

func TestASubscriptionHasDefaultsAndMayChange(t *testing.T) {
	onControlPlane(t)
	object := create(t, "orders", consumer(nil, nil))
	found, _, err := unstructured.NestedMap(object.Object, "spec", "subscription")
	require.NoError(t, err)
	require.Equal(t, fields{
		"topics": []any{"shop/orders/new"}, "name": "billing", "type": "Shared", "consumersPerReplica": int64(1),
	}, found)
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	require.NoError(t, err)
	object.Object["spec"] = merge(spec, fields{"subscription": fields{"topicsPattern": "shop/orders/.*", "name": "audit"}})
	require.NoError(t, people.Update(t.Context(), object))
}

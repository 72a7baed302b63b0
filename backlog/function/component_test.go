// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

func components() map[string]function.Component {
	cluster := backlog.Cluster{AdminURL: "http://broker:8080", Access: "media/pulsar?x=1&y"}
	return map[string]function.Component{
		"a function of the brokers' worker": {
			Cluster: cluster, Kind: function.KindFunction, Tenant: "public", Namespace: "default", Name: "resize",
		},
		"a sink of a standalone worker": {
			Cluster:   cluster,
			WorkerURL: "https://worker:6751",
			Kind:      function.KindSink,
			Tenant:    "a-b",
			Namespace: "c.d",
			Name:      "e=f",
		},
		"a source with a name that needs escaping": {
			Kind: function.KindSource, Tenant: "public", Namespace: "default", Name: "100% /of?it&more",
		},
	}
}

func TestWorkloadsAreReadBack(t *testing.T) {
	seen := map[string]bool{}
	for name, component := range components() {
		t.Run(name, func(t *testing.T) {
			got, err := function.ParseComponent(component.Workload())
			require.NoError(t, err)
			require.Equal(t, component, got)
			require.False(t, seen[component.Workload()], "two components have one workload")
			seen[component.Workload()] = true
		})
	}
}

func TestWorkloadsOfOthersAreRefused(t *testing.T) {
	tests := map[string]string{
		"nothing":                   "",
		"another source's workload": "pods:media/resize",
		"no name":                   "worker:function/public/default?admin=http%3A%2F%2Fb%3A8080",
		"an extra part":             "worker:function/public/default/a/b?admin=http%3A%2F%2Fb%3A8080",
		"an unknown kind":           "worker:window/public/default/a?admin=http%3A%2F%2Fb%3A8080",
		"an unknown key":            "worker:function/public/default/a?admin=http%3A%2F%2Fb%3A8080&color=red",
		"a key twice":               "worker:function/public/default/a?admin=http%3A%2F%2Fb%3A8080&admin=x",
		"another spelling":          "worker:function/public/default/a?admin=http://b:8080",
		"a bad escape in a name":    "worker:function/public/default/%zz?admin=x",
		"a bad escape in a value":   "worker:function/public/default/a?admin=%zz",
	}
	for name, workload := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := function.ParseComponent(workload)
			require.ErrorContains(t, err, "does not look like worker:function/tenant/namespace/name")
		})
	}
}

func FuzzParseComponent(f *testing.F) {
	for _, component := range components() {
		f.Add(component.Workload())
	}
	f.Fuzz(func(t *testing.T, workload string) {
		component, err := function.ParseComponent(workload)
		if err != nil {
			require.Zero(t, component)
			return
		}
		require.Equal(t, workload, component.Workload(), "each component has one workload")
	})
}

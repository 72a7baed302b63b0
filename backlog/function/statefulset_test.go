// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStatefulSetOfAWorkersFunctionHasPulsarsName(t *testing.T) {
	tests := map[string]struct{ tenant, namespace, name, want string }{
		"a plain name stays":                          {"public", "default", "resize", "pf-public-default-resize"},
		"a dot may stay":                              {"public", "default", "v1.2", "pf-public-default-v1.2"},
		"capitals are hashed":                         {"public", "default", "Resize", "pf-public-default-resize-2f7b03a9"},
		"characters that Kubernetes lacks are hashed": {"public", "default", "re_size", "pf-public-default-re-size-10f1b1e2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, StatefulSetName(test.tenant, test.namespace, test.name))
		})
	}
}

func TestAStatefulSetIsKnownByItsName(t *testing.T) {
	tests := map[string]struct {
		namespace, name, jobName string
		is, not                  []string
	}{
		"plain where that is valid": {
			namespace: "default", name: "resize", is: []string{"pf-public-default-resize"},
			not: []string{"pf-public-default-resize-5c52e3ec", "pf-public-default-resize2", "resize", "", "-", "x-"},
		},
		"with a hash where it had to be changed": {
			namespace: "My_Space", name: "CropIt", is: []string{"pf-public-my-space-cropit-6c8db9d4"},
			not: []string{"pf-public-my-space-cropit"},
		},
		"after a job's name": {
			namespace: "default", name: "job", jobName: "Nightly_Jobs",
			is: []string{
				"pf-public-default-job", "etl-9fa12412", "nightly-jobs-" + shortHash("Nightly_Jobs-public-default-job"),
			},
			not: []string{"etl-" + shortHash("etl-public-default-other"), "etl-00000000"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := Function{Tenant: "public", Namespace: test.namespace, Name: test.name, JobName: test.jobName}
			for _, is := range test.is {
				require.True(t, f.RunsAs(is), is)
			}
			for _, not := range test.not {
				require.False(t, f.RunsAs(not), not)
			}
		})
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestCoverageSaysWhatIsMissing(t *testing.T) {
	missing := func(count int) (topics []v1alpha1.MissingTopic) {
		for i := range count {
			topics = append(topics, v1alpha1.MissingTopic{Name: fmt.Sprint("in-", i), Message: "permission missing"})
		}
		return topics
	}
	tests := map[string]struct {
		coverage v1alpha1.Coverage
		refusal  string // empty for none
	}{
		"998 of 1,000 topics": {v1alpha1.Coverage{Topics: 1000, KnownTopics: 998, Missing: missing(2)}, ""},
		"more than are named": {v1alpha1.Coverage{Topics: 10, Missing: missing(5)}, ""},
		"all topics": {
			v1alpha1.Coverage{Topics: 2, KnownTopics: 2}, "knownTopics must be below topics, or leave coverage out",
		},
		"no topic":         {v1alpha1.Coverage{KnownTopics: -1}, "should be greater than or equal to 1"},
		"a negative count": {v1alpha1.Coverage{Topics: 2, KnownTopics: -1}, "should be greater than or equal to 0"},
		"six names":        {v1alpha1.Coverage{Topics: 10, Missing: missing(6)}, "must have at most 5 items"},
		"a name twice": {
			v1alpha1.Coverage{Topics: 10, Missing: append(missing(1), missing(1)...)}, "Duplicate value",
		},
		"a topic without a name": {
			v1alpha1.Coverage{Topics: 10, Missing: []v1alpha1.MissingTopic{{Message: "gone"}}},
			"should be at least 1 chars long",
		},
		"a message that is too long": {
			v1alpha1.Coverage{Topics: 10, Missing: []v1alpha1.MissingTopic{{Name: "in", Message: strings.Repeat("x", 1025)}}},
			"may not be more than 1024",
		},
	}
	onControlPlane(t)
	object := create(t, "coverage", functionPolicy(fields{"scaleTargetRef": meshTarget(nil)}))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := patchStatus(t, object, func(status *v1alpha1.AutoscalingPolicyStatus) {
				status.Signals = &v1alpha1.Signals{MeasuredAt: metav1.Now(), Coverage: &tt.coverage}
			})
			if tt.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.refusal)
		})
	}
}

func TestAStatusHasAtLeastOneUsefulReplica(t *testing.T) {
	onControlPlane(t)
	object := create(t, "useful", functionPolicy(fields{"scaleTargetRef": meshTarget(nil)}))
	for replicas, refusal := range map[int32]string{0: "should be greater than or equal to 1", 1: ""} {
		err := patchStatus(t, object, func(status *v1alpha1.AutoscalingPolicyStatus) {
			status.Signals = &v1alpha1.Signals{MeasuredAt: metav1.Now(), UsefulReplicas: &replicas}
		})
		if refusal == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, refusal)
		}
	}
}

// patchStatus changes the status of a policy.
func patchStatus(t *testing.T, object client.Object, change func(*v1alpha1.AutoscalingPolicyStatus)) error {
	t.Helper()
	p := &v1alpha1.AutoscalingPolicy{}
	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), p))
	before := p.DeepCopy()
	change(&p.Status)
	return people.Status().Patch(t.Context(), p, client.MergeFrom(before))
}

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

// change is one of a status, as the adapter makes it.
type change = func(*v1alpha1.AutoscalingPolicyStatus)

func TestStatusesHaveBounds(t *testing.T) {
	const least, most = "should be greater than or equal to ", "should be less than or equal to "
	missing := func(count int) (topics []v1alpha1.MissingTopic) {
		for i := range count {
			topics = append(topics, v1alpha1.MissingTopic{Name: fmt.Sprint("in-", i), Message: "permission missing"})
		}
		return topics
	}
	covered := func(topics, known int32, missing ...v1alpha1.MissingTopic) change {
		return func(status *v1alpha1.AutoscalingPolicyStatus) {
			status.Signals = &v1alpha1.Signals{MeasuredAt: metav1.Now(), Coverage: &v1alpha1.Coverage{
				Topics: topics, KnownTopics: known, Missing: missing,
			}}
		}
	}
	useful := func(replicas int32) change {
		return func(status *v1alpha1.AutoscalingPolicyStatus) {
			status.Signals = &v1alpha1.Signals{MeasuredAt: metav1.Now(), UsefulReplicas: &replicas}
		}
	}
	started := func(change func(*v1alpha1.ReplicaStart)) change {
		return func(status *v1alpha1.AutoscalingPolicyStatus) {
			status.Start = &v1alpha1.ReplicaStart{
				MeasuredAt: metav1.Now(), Replicas: 20, TotalSeconds: 600, ProgramSeconds: 600,
			}
			change(status.Start)
		}
	}
	onControlPlane(t)
	object := create(t, "bounded", functionPolicy(fields{"scaleTargetRef": meshTarget(nil)}))
	for name, test := range map[string]struct {
		change  change
		refusal string // empty for none
	}{
		"998 of 1,000 topics":    {covered(1000, 998, missing(2)...), ""},
		"more than are named":    {covered(10, 0, missing(5)...), ""},
		"all topics":             {covered(2, 2), "knownTopics must be below topics, or leave coverage out"},
		"no topic":               {covered(0, -1), least + "1"},
		"a negative count":       {covered(2, -1), least + "0"},
		"six names":              {covered(10, 0, missing(6)...), "must have at most 5 items"},
		"a name twice":           {covered(10, 0, append(missing(1), missing(1)...)...), "Duplicate value"},
		"a topic without a name": {covered(10, 0, v1alpha1.MissingTopic{Message: "gone"}), "should be at least 1 chars long"},
		"a message that is too long": {
			covered(10, 0, v1alpha1.MissingTopic{Name: "in", Message: strings.Repeat("x", 1025)}), "may not be more than 1024",
		},
		"no useful replica":  {useful(0), least + "1"},
		"one useful replica": {useful(1), ""},
		"a start in phases":  {started(func(*v1alpha1.ReplicaStart) {}), ""},
		"no replica":         {started(func(s *v1alpha1.ReplicaStart) { s.Replicas = 0 }), least + "1"},
		"too many replicas":  {started(func(s *v1alpha1.ReplicaStart) { s.Replicas = 21 }), most + "20"},
		"more than a start":  {started(func(s *v1alpha1.ReplicaStart) { s.TotalSeconds = 601 }), most + "600"},
		"a negative time":    {started(func(s *v1alpha1.ReplicaStart) { s.ProgramSeconds = -1 }), least + "0"},
	} {
		t.Run(name, func(t *testing.T) {
			err := patchStatus(t, object, test.change)
			if test.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.refusal)
		})
	}
}

// patchStatus changes the status of a policy.
func patchStatus(t *testing.T, object client.Object, change change) error {
	t.Helper()
	p := &v1alpha1.AutoscalingPolicy{}
	require.NoError(t, people.Get(t.Context(), client.ObjectKeyFromObject(object), p))
	before := p.DeepCopy()
	change(&p.Status)
	return people.Status().Patch(t.Context(), p, client.MergeFrom(before))
}

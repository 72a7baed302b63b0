// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// writtenBy precedes the writer in an event, who is unknown while the API server is late: controllers
// TestKubectlScaleIsNamed and TestTheWriterOfAFunctionMeshIsNamed have the names.
const writtenBy = "was written by "

// awaitEvent waits for an event about the policy of a Function, with the words.
func awaitEvent(t *testing.T, name, reason, words string) {
	t.Helper()
	scene.Await(t, "the event "+reason, func(ctx context.Context) (bool, string, error) {
		return hasEvent(ctx, name, reason, words)
	}, name)
}

// hasEvent looks for an event about the policy of a Function, with the words; others are those of the reason without.
func hasEvent(ctx context.Context, name, reason, words string) (found bool, others string, err error) {
	var list eventsv1.EventList
	if err := scene.Client.List(ctx, &list, client.InNamespace(stage.Namespace)); err != nil {
		return false, "", err
	}
	var notes []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.Name != name || e.Reason != reason {
			continue
		}
		if strings.Contains(e.Note, words) {
			return true, "", nil
		}
		notes = append(notes, e.Note)
	}
	return false, fmt.Sprint(notes), nil
}

func TestDirectFollowsTheLoadAndTakesOverWhatOthersWrite(t *testing.T) {
	t.Parallel()
	const name = "direct"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond})
	p := newPolicy(name)
	window := int32(600) // a manual scale-up is held for this long
	p.Spec.Actuator, p.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = v1alpha1.ActuatorDirect, &window
	addPolicy(t, p)
	stop := publish(t, f, load.Constant(90))
	f.AwaitReplicas(t, 4, 20) // of 25/s each: fewer could not keep up
	f.AwaitConditions(t, "Ready=True/Scaling")
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Equal(t, &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: "it is set in spec.actuator"},
		p.Status.Actuator)
	require.Empty(t, p.Status.HorizontalPodAutoscaler)
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Nil(t, hpa)

	// A decision that raises replicas would be written over those that are scaled by hand.
	stop()
	require.NoError(t, f.AwaitAllDone(t.Context()))
	f.AwaitPolicy(t, "no load", func(p *v1alpha1.AutoscalingPolicy) bool {
		s := p.Status.Signals
		return s != nil && s.PublishRate != nil && s.PublishRate.AsApproximateFloat64() < 10
	})
	scaleByHand(t, scene, name, 20)
	f.AwaitPolicy(t, "20 replicas to be decided", func(p *v1alpha1.AutoscalingPolicy) bool {
		d := p.Status.DesiredReplicas
		return d != nil && *d == 20 && *p.Status.SpecReplicas == 20
	})
	awaitEvent(t, name, "ReplicasChangedExternally", "-> 20 "+writtenBy)
	since := time.Now()
	publish(t, f, load.Constant(90))
	f.AwaitDone(t, 100)
	require.Subset(t, []int{20}, scene.Mesh.Desired(stage.Namespace, name, since)[1:], "nothing fights it")

	require.NoError(t, scene.Client.Delete(t.Context(), p))
	f.AwaitDone(t, 100)
	require.Equal(t, int64(20), replicasOf(t, name), "deletion leaves replicas")
}

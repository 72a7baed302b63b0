// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// terminating is the API server's error for a create in a namespace that is being deleted.
func terminating() error {
	err := apierrors.NewForbidden(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"},
		"pap-resize", errors.New("unable to create new content in namespace media because it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: corev1.NamespaceTerminatingCause, Message: "namespace media is being terminated"})
	return err
}

func TestAPolicyGoesWithItsNamespace(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.events()
	require.NoError(t, env.client.Delete(t.Context(), env.autoscaler())) // in no particular order
	env.applyFails = terminating()
	env.after(testInterval)
	env.answer(1_500, 12_000)
	require.Equal(t, []string{"apply"}, env.reconcile(), "no error, and no status that blames the API server")
	require.Empty(t, env.events())
}

func TestWhatWasSuspendedGoesWithItsNamespace(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"other autoscalers": foreignAutoscalers(), "maxReplicas alone": {meshAutoscaler()},
	} {
		t.Run(name, func(t *testing.T) {
			env := takingOver(t, objects...)
			env.reconcile()
			env.until("our autoscaler", env.scaling)
			env.events()
			env.createFails = terminating()
			require.NoError(t, env.client.Delete(t.Context(), fixture.Policy()))
			env.pass()
			require.True(t, env.gone(), "a RoleBinding of the namespace goes too: soon the finalizer cannot be removed")
			require.Empty(t, env.events(), "nothing is to be restored by hand")
		})
	}
}

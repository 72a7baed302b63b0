// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// TestAKEDAThatIsTooOldIsReported: it does not know every field of our ScaledObject, and a retry does not help.
//
// Source: apimachinery 0.37, managedfields/internal/structuredmerge.go: a plain error, which becomes a 500.
func TestAKEDAThatIsTooOldIsReported(t *testing.T) {
	env := newKEDAEnv(t, fixture.Function(), kedaPolicy())
	env.reconcile()
	env.answer(700, 10_000)
	env.applyFails = apierrors.NewInternalError(
		errors.New("failed to create typed patch object (media/pap-resize; keda.sh/v1alpha1, Kind=ScaledObject): " +
			".spec.fallback.behavior: field not declared in schema"))
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ApplyRefused", status)
	require.Contains(t, message, "update KEDA with its CustomResourceDefinitions")
	require.Contains(t, message, ".spec.fallback.behavior: field not declared in schema")
	require.Empty(t, env.reconcile(), "it is not asked again and again")
}

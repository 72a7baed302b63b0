// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestCreatingInANamespaceThatGoesIsForbiddenForThatCause: by it the controller tells that a policy goes too.
func TestCreatingInANamespaceThatGoesIsForbiddenForThatCause(t *testing.T) {
	t.Parallel()
	clients, err := kubernetes.NewForConfig(onControlPlane(t).RESTConfig())
	require.NoError(t, err)
	const name = "doomed"
	doomed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/stay"}}}
	_, err = clients.CoreV1().Namespaces().Create(t.Context(), doomed, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, clients.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}))
	_, err = clients.CoreV1().ConfigMaps(name).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.True(t, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "%v", err)
	require.Regexp(t, "because it is being terminated$", err.Error())
}

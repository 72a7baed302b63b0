// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const policiesPath = "/apis/pulsar-autoscaler.io/v1alpha1/namespaces/" + namespace + "/autoscalingpolicies/"

// raw asks the API server for paths.
func raw(t *testing.T) rest.Interface {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(onControlPlane(t).RESTConfig())
	require.NoError(t, err)
	return clientset.RESTClient()
}

// TestAPolicyHasNoScaleSubresource: an autoscaler that wrote into a user's object would be drift to a GitOps tool.
func TestAPolicyHasNoScaleSubresource(t *testing.T) {
	onControlPlane(t)
	object := create(t, "no-scale", functionPolicy(fields{"scaleTargetRef": meshTarget(nil)}))
	err := raw(t).Get().AbsPath(policiesPath + object.GetName() + "/scale").Do(t.Context()).Error()
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

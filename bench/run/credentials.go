// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copiedSecret is the Secret with the pods' credentials in the namespace of a run, in the keys of Function Mesh.
const (
	copiedSecret = "pulsar-auth"
	keyPlugin    = "clientAuthenticationPlugin"
	keyParams    = "clientAuthenticationParameters"
)

// copySecret copies the Secret of the scenario: pods read only Secrets of their namespace.
func (r *runner) copySecret(ctx context.Context) error {
	named := r.Scenario.Pulsar.AuthSecret
	if named == "" {
		return nil
	}
	namespace, name, _ := strings.Cut(named, "/")
	var found corev1.Secret
	if err := r.Kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found); err != nil {
		return fmt.Errorf("reading pulsar.authSecret %s: %w", named, err)
	}
	copied := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: copiedSecret, Labels: map[string]string{labelManagedBy: managedBy, labelRun: r.id},
		},
		Data: map[string][]byte{},
	}
	for _, key := range []string{keyPlugin, keyParams} {
		if len(found.Data[key]) == 0 {
			return fmt.Errorf("pulsar.authSecret %s lacks %s: it must have %s and %s, as authSecret of a Function", named, key,
				keyPlugin, keyParams)
		}
		copied.Data[key] = found.Data[key]
	}
	if err := r.Kube.Create(ctx, copied); err != nil {
		return fmt.Errorf("copying pulsar.authSecret %s: %w", named, err)
	}
	return nil
}

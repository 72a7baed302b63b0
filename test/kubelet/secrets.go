// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mount writes the Secrets of a pod's volumes, and returns its command with their directories in place of the paths in
// the container: the worker gives instances their token this way.
func (k *Kubelet) mount(ctx context.Context, object *corev1.Pod, command []string) (mounted []string, err error) {
	var paths []string
	for _, volume := range object.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		var secret corev1.Secret
		key := types.NamespacedName{Namespace: object.Namespace, Name: volume.Secret.SecretName}
		if err := k.reader.Get(ctx, key, &secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s of pod %s: %w", key, object.Name, err)
		}
		dir := k.root.path("secrets", string(secret.UID))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("writing Secret %s: %w", key, err)
		}
		for name, value := range secret.Data {
			if err := os.WriteFile(filepath.Join(dir, name), value, 0o600); err != nil {
				return nil, fmt.Errorf("writing Secret %s: %w", key, err)
			}
		}
		for _, m := range object.Spec.Containers[0].VolumeMounts {
			if m.Name == volume.Name {
				paths = append(paths, m.MountPath, dir)
			}
		}
	}
	replacer := strings.NewReplacer(paths...)
	for _, word := range command {
		mounted = append(mounted, replacer.Replace(word))
	}
	return mounted, nil
}

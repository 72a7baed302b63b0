// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Volumes are those of a pod, each a directory of its name below a directory.
type Volumes struct {
	client kubernetes.Interface
	pod    *corev1.Pod
	dir    string
	// tokens are the pod's tokens by path: a new token for each sync would change the file.
	tokens map[string][]byte
}

// NewVolumes returns the volumes of a pod below dir.
func NewVolumes(client kubernetes.Interface, pod *corev1.Pod, dir string) Volumes {
	return Volumes{client: client, pod: pod, dir: dir, tokens: map[string][]byte{}}
}

// Fill creates or updates all volumes. The error is the message of a FailedMount event.
func (v Volumes) Fill(ctx context.Context) error {
	var errs []error
	for i := range v.pod.Spec.Volumes {
		if err := v.fillOne(ctx, &v.pod.Spec.Volumes[i]); err != nil {
			errs = append(errs, fmt.Errorf("volume %q: %w", v.pod.Spec.Volumes[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// Path is the directory of a volume.
func (v Volumes) Path(name string) string { return filepath.Join(v.dir, name) }

func (v Volumes) fillOne(ctx context.Context, volume *corev1.Volume) error {
	var files map[string][]byte
	var err error
	switch source := volume.VolumeSource; {
	case source.EmptyDir != nil:
		return os.MkdirAll(v.Path(volume.Name), 0o777)
	case source.Secret != nil:
		files, err = v.secret(ctx, source.Secret.SecretName, source.Secret.Items)
	case source.ConfigMap != nil:
		files, err = v.configMap(ctx, source.ConfigMap.Name, source.ConfigMap.Items)
	case source.Projected != nil:
		files, err = v.projected(ctx, volume.Name, source.Projected.Sources)
	default:
		return errors.New("this package has emptyDir, secret, configMap and projected volumes only")
	}
	if err != nil {
		return err
	}
	return publish(v.Path(volume.Name), files)
}

func (v Volumes) secret(ctx context.Context, name string, items []corev1.KeyToPath) (map[string][]byte, error) {
	secret, err := v.client.CoreV1().Secrets(v.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return pick(secret.Data, items)
}

func (v Volumes) configMap(ctx context.Context, name string, items []corev1.KeyToPath) (map[string][]byte, error) {
	object, err := v.client.CoreV1().ConfigMaps(v.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for key, text := range object.Data {
		files[key] = []byte(text)
	}
	maps.Copy(files, object.BinaryData)
	return pick(files, items)
}

// pick returns the items of the files, or all files without items.
func pick(files map[string][]byte, items []corev1.KeyToPath) (map[string][]byte, error) {
	if len(items) == 0 {
		return files, nil
	}
	picked := map[string][]byte{}
	for _, item := range items {
		content, found := files[item.Key]
		if !found {
			return nil, fmt.Errorf("references non-existent key %s", item.Key)
		}
		picked[item.Path] = content
	}
	return picked, nil
}

func (v Volumes) projected(ctx context.Context, volume string, sources []corev1.VolumeProjection) (map[string][]byte,
	error,
) {
	all := map[string][]byte{}
	for _, source := range sources {
		var files map[string][]byte
		var err error
		switch {
		case source.ServiceAccountToken != nil:
			files, err = v.token(ctx, volume, source.ServiceAccountToken)
		case source.ConfigMap != nil:
			files, err = v.configMap(ctx, source.ConfigMap.Name, source.ConfigMap.Items)
		case source.DownwardAPI != nil:
			files, err = v.downward(source.DownwardAPI.Items)
		default:
			err = errors.New("this package projects tokens, ConfigMaps and the downward API only")
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

// token requests a token of the pod's service account, bound to the pod.
func (v Volumes) token(ctx context.Context, volume string, source *corev1.ServiceAccountTokenProjection) (
	map[string][]byte, error,
) {
	key := filepath.Join(volume, source.Path)
	if v.tokens[key] == nil {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: source.ExpirationSeconds,
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: "Pod", Name: v.pod.Name, UID: v.pod.UID,
			},
		}}
		if source.Audience != "" {
			request.Spec.Audiences = []string{source.Audience}
		}
		token, err := v.client.CoreV1().ServiceAccounts(v.pod.Namespace).CreateToken(ctx, v.pod.Spec.ServiceAccountName,
			request, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("requesting a token: %w", err)
		}
		v.tokens[key] = []byte(token.Status.Token)
	}
	return map[string][]byte{source.Path: v.tokens[key]}, nil
}

func (v Volumes) downward(items []corev1.DownwardAPIVolumeFile) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, item := range items {
		if item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.namespace" {
			return nil, fmt.Errorf("file %s: this package knows metadata.namespace only", item.Path)
		}
		files[item.Path] = []byte(v.pod.Namespace)
	}
	return files, nil
}

// publish replaces all files of dir at once, as a kubelet does: they are links into a directory that is replaced.
func publish(dir string, files map[string][]byte) error {
	const current = "..data"
	if isPublished(filepath.Join(dir, current), files) {
		return nil
	}
	version := ".." + strconv.FormatInt(time.Now().UnixNano(), 10)
	if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, version, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
			return err
		}
	}
	next := filepath.Join(dir, current+"_tmp")
	before, _ := os.Readlink(filepath.Join(dir, current)) // there is none at first
	if err := errors.Join(os.Symlink(version, next), os.Rename(next, filepath.Join(dir, current))); err != nil {
		return err
	}
	for name := range files {
		err := os.Symlink(filepath.Join(current, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if before == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, before))
}

func isPublished(dir string, files map[string][]byte) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(files) {
		return false
	}
	for name, content := range files {
		if found, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(found) != string(content) {
			return false
		}
	}
	return true
}

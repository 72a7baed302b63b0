// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// obstacle is why there are no credentials, as a message for the user; empty when there are.
type obstacle struct {
	text string
	// ownMayReplace is set if the adapter's own credentials may be used instead: the adapter cannot read what is named,
	// but it is not wrong.
	ownMayReplace bool
}

// secretKey names the keys of a Secret that are read.
type secretKey struct {
	namespace, name string
	// field of spec.pulsar that names the Secret.
	field string
	// keys of the Secret; the first is mandatory when required.
	keys     [3]string
	required bool
}

// secretContent has the values of the keys, or why they are unknown.
type secretContent struct {
	values   [3]string
	obstacle obstacle
}

// maxSecretValue exceeds any key or bundle of certificates; it bounds the cache.
const maxSecretValue = 64 << 10

// secrets reads single keys of single Secrets, and caches nothing else of them.
type secrets struct {
	reader   client.Reader
	contents *target.Lookups[secretKey, secretContent]
}

func newSecrets(reader client.Reader, now func() time.Time) *secrets {
	return &secrets{reader: reader, contents: target.NewLookups[secretKey, secretContent](now)}
}

func (s *secrets) find(ctx context.Context, read secretKey) (secretContent, error) {
	return s.contents.Find(ctx, read, func(ctx context.Context) (secretContent, bool, error) {
		content, err := s.get(ctx, read)
		return content, content.obstacle.text != "", err
	})
}

// get requests the Secret from the API server. The user has to create a missing Secret; the platform decides that one
// is forbidden.
func (s *secrets) get(ctx context.Context, read secretKey) (secretContent, error) {
	if problems := validation.IsDNS1123Subdomain(read.name); len(problems) > 0 {
		return blocked(false, "spec.pulsar.%s is %q, which cannot be the name of a Secret: %s", read.field, read.name,
			problems[0]), nil
	}
	var secret corev1.Secret
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: read.namespace, Name: read.name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return blocked(false, "Secret %s, which spec.pulsar.%s names, does not exist: create it", read.name, read.field), nil
	case apierrors.IsForbidden(err):
		return blocked(true,
			"Secret %s, which spec.pulsar.%s names, may not be read: grant the adapter get on secrets (value rbac.secrets of "+
				"the chart), or give it credentials of its own, such as --pulsar-token-file", read.name, read.field), nil
	case err != nil:
		return secretContent{}, fmt.Errorf("reading Secret %s/%s: %w", read.namespace, read.name, err)
	}
	var content secretContent
	for i, key := range read.keys {
		value := secret.Data[key]
		if len(value) > maxSecretValue {
			return blocked(false, "key %s of Secret %s, which spec.pulsar.%s names, is longer than %d bytes", key, read.name,
				read.field, maxSecretValue), nil
		}
		content.values[i] = strings.TrimSpace(string(value))
	}
	if read.required && content.values[0] == "" {
		return blocked(false, "Secret %s, which spec.pulsar.%s names, has no key %q: add it or correct the key", read.name,
			read.field, read.keys[0]), nil
	}
	return content, nil
}

func blocked(replaceable bool, format string, args ...any) secretContent {
	return secretContent{obstacle: obstacle{text: fmt.Sprintf(format, args...), ownMayReplace: replaceable}}
}

// inPodFile returns an obstacle if the parameters of an authentication plugin name a file that only the function's pods
// have.
func inPodFile(plugin, params string) obstacle {
	path := authparams.FindFile(plugin, params)
	if path == "" {
		return obstacle{}
	}
	return obstacle{
		ownMayReplace: true,
		text: fmt.Sprintf(
			"the credentials are in %s inside of the pods, which the adapter cannot read: put their content into the Secret, "+
				"or set spec.pulsar.authSecret of the policy, or give the adapter credentials of its own, such as "+
				"--pulsar-token-file", path),
	}
}

// trustInPod does the same for a file of certificates.
func trustInPod(path string) obstacle {
	return obstacle{
		ownMayReplace: true,
		text: fmt.Sprintf(
			"the certificates to trust are in %s (tlsTrustCertsFilePath) inside of the pods, which the adapter cannot read: "+
				"set spec.pulsar.tlsConfig of the policy to a Secret with them, or --pulsar-ca-file of the adapter", path),
	}
}

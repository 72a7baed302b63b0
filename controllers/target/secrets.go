// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// ownToken is in messages about credentials of the adapter.
const ownToken = "--pulsar-token-file (value pulsar.credentials of the chart)"

// unreadableError is a plan.Violation in place of which the adapter's own credentials may be used: the adapter cannot
// read what is named, but it is not wrong.
type unreadableError struct{ *plan.Violation }

func (e unreadableError) Unwrap() error { return e.Violation }

func unreadable(format string, args ...any) error {
	return unreadableError{plan.TargetProblem(v1alpha1.ReasonTargetInvalid, format, args...)}
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

type secretContent [3]string

// maxSecretValue exceeds any key or bundle of certificates; it bounds the cache.
const maxSecretValue = 64 << 10

// get requests the Secret from the API server. The user has to create a missing Secret; the platform decides that one
// is forbidden.
func (c *Credentials) get(ctx context.Context, read secretKey) (secretContent, error) {
	if problems := validation.IsDNS1123Subdomain(read.name); len(problems) > 0 {
		return secretContent{}, Invalidf("spec.pulsar.%s is %q, which cannot be the name of a Secret: %s", read.field,
			read.name, problems[0])
	}
	var secret corev1.Secret
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: read.namespace, Name: read.name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return secretContent{}, Invalidf("Secret %s, which spec.pulsar.%s names, does not exist: create it", read.name,
			read.field)
	case apierrors.IsForbidden(err):
		return secretContent{}, unreadable(
			"Secret %s, which spec.pulsar.%s names, may not be read: grant the adapter get on secrets (value rbac.secrets of "+
				"the chart), or give it credentials of its own, such as %s", read.name, read.field, ownToken)
	case err != nil:
		return secretContent{}, fmt.Errorf("reading Secret %s/%s: %w", read.namespace, read.name, err)
	}
	var content secretContent
	for i, key := range read.keys {
		value := secret.Data[key]
		if len(value) > maxSecretValue {
			return secretContent{}, Invalidf("key %s of Secret %s, which spec.pulsar.%s names, is longer than %d bytes",
				key, read.name, read.field, maxSecretValue)
		}
		content[i] = strings.TrimSpace(string(value))
	}
	if read.required && content[0] == "" {
		return secretContent{}, Invalidf("Secret %s, which spec.pulsar.%s names, has no key %q: add it or correct "+
			"the key", read.name, read.field, read.keys[0])
	}
	return content, nil
}

// inPodFile fails if the parameters of an authentication plugin name a file that only the function's pods have.
func inPodFile(plugin, params string) error {
	path := authparams.FindFile(plugin, params)
	if path == "" {
		return nil
	}
	return unreadable(
		"the credentials are in %s inside of the pods, which the adapter cannot read: put their content into the Secret, "+
			"or set spec.pulsar.authSecret of the policy, or give the adapter credentials of its own, such as %s",
		path, ownToken)
}

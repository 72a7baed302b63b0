// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// Certificate is the serving certificate of this replica: the one in the Secret, or until that is known one that no
// client trusts.
type Certificate struct {
	secret types.NamespacedName
	source cache.Cache
	// changed is called for each event of the Secret.
	changed func()

	mu          sync.Mutex
	authorities []byte
	certificate []byte
	key         []byte
	before      dynamiccertificates.CertKeyContentProvider
	listeners   []dynamiccertificates.Listener
}

// newCertificate watches the one Secret, which needs no permission to read others.
func newCertificate(mgr manager.Manager, secret types.NamespacedName, changed func()) (*Certificate, error) {
	name := fields.OneTermEqualSelector("metadata.name", secret.Name)
	source, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{secret.Namespace: {FieldSelector: name}}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("creating a cache of the serving certificate: %w", err)
	}
	return &Certificate{secret: secret, source: source, changed: changed}, nil
}

// NeedLeaderElection is false: every replica serves.
func (c *Certificate) NeedLeaderElection() bool { return false }

// Start follows the Secret until the context ends.
func (c *Certificate) Start(ctx context.Context) error {
	_, err := cluster.Follow(ctx, c.source, &corev1.Secret{}, func(_ types.NamespacedName, object client.Object) {
		c.follow(ctx, object)
	})
	if err != nil {
		return fmt.Errorf("watching Secret %s: %w", c.secret, err)
	}
	return c.source.Start(ctx)
}

// follow keeps the current certificate if the Secret has no usable one, or is deleted.
func (c *Certificate) follow(ctx context.Context, object client.Object) {
	defer c.changed()
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return
	}
	certificate, key := secret.Data[keyCertificate], secret.Data[keyPrivateKey]
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		log.FromContext(ctx).Error(err, "the Secret has no usable certificate, keeping the serving one", "secret",
			c.secret.String())
		return
	}
	c.mu.Lock()
	c.authorities = secret.Data[keyAuthorities]
	if string(c.certificate) == string(certificate) {
		c.mu.Unlock()
		return
	}
	c.certificate, c.key = certificate, key
	listeners := c.listeners
	c.mu.Unlock()
	for _, listener := range listeners {
		listener.Enqueue()
	}
	log.FromContext(ctx).Info("serving another certificate", "secret", c.secret.String(), "issuer",
		pair.Leaf.Issuer.CommonName, "notAfter", pair.Leaf.NotAfter)
}

// Ready returns why there is no certificate that clients trust; nil if there is one.
func (c *Certificate) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.certificate) == 0 {
		return errors.New("no serving certificate is known: Secret " + c.secret.String() +
			" gets it, which needs the permissions in docs/certificates.md")
	}
	return nil
}

// Over returns c with the other provider as its content until the Secret is known.
func (c *Certificate) Over(before dynamiccertificates.CertKeyContentProvider) *Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
	return c
}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (c *Certificate) Name() string { return "secret::" + c.secret.String() }

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (c *Certificate) CurrentCertKeyContent() (certificate, key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.certificate) == 0 && c.before != nil {
		return c.before.CurrentCertKeyContent()
	}
	return c.certificate, c.key
}

// Authorities are the authorities of client and server certificates, in PEM.
func (c *Certificate) Authorities() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authorities
}

// AddListener implements dynamiccertificates.Notifier.
func (c *Certificate) AddListener(listener dynamiccertificates.Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, listener)
}

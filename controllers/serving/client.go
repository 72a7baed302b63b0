// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const clientName = "keda"

// Client is the only client that may call, such as KEDA.
type Client struct {
	// Secret gets the authorities, and a certificate for the client.
	Secret types.NamespacedName
	// Owner is the ClusterRole that owns both Secrets; empty for none.
	Owner string
}

type clientSecret struct {
	config Client
	client client.Client
}

// publish writes the authorities and a certificate of the newest one into the Secret. That certificate is valid as long
// as the authority: clients such as KEDA read it again only after a failed request.
func (s clientSecret) publish(ctx context.Context, logger logr.Logger, data map[string][]byte) error {
	secret := &corev1.Secret{}
	name := s.config.Secret
	if err := client.IgnoreNotFound(s.client.Get(ctx, name, secret)); err != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	owners, err := ownerOf(ctx, s.client, s.config.Owner)
	if err != nil {
		return err
	}
	server, held := decode(data), decode(secret.Data)
	wanted := map[string][]byte{
		keyAuthorities: data[keyAuthorities], keyCertificate: secret.Data[keyCertificate],
		keyPrivateKey: secret.Data[keyPrivateKey],
	}
	now := time.Now()
	if !server.admits(held.leaf, now) {
		if server.signer == nil {
			return nil // the next stage creates an authority
		}
		authority := server.authorities[0]
		template, err := newTemplate(clientName, now, authority.NotAfter.Sub(now))
		if err != nil {
			return err
		}
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if wanted[keyCertificate], wanted[keyPrivateKey], err = server.sign(template); err != nil {
			return fmt.Errorf("issuing a client certificate: %w", err)
		}
	}
	if bytes.Equal(wanted[keyAuthorities], secret.Data[keyAuthorities]) &&
		bytes.Equal(wanted[keyCertificate], secret.Data[keyCertificate]) && owned(secret, owners) {
		return nil
	}
	if err := apply(ctx, s.client, newSecret(name, wanted, owners)); err != nil {
		return err
	}
	logger.Info("changed the client's certificate", "secret", name.String())
	return nil
}

// admits reports whether a client's certificate is signed by the newest authority, and valid.
func (c content) admits(leaf *x509.Certificate, now time.Time) bool {
	if leaf == nil || len(c.authorities) == 0 {
		return false
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.authorities[0])
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

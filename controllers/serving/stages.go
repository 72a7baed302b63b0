// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Keys of the Secret.
const (
	keyAuthorities  = "ca.crt"
	keyAuthorityKey = "ca.key"
	keyCertificate  = "tls.crt"
	keyPrivateKey   = "tls.key"
)

// content is the usable content of the Secret.
type content struct {
	// authorities that clients trust, the newest first: that one signs.
	authorities []*x509.Certificate
	// signer is the key of the newest authority; nil if the Secret has none for it.
	signer crypto.Signer
	// leaf is the serving certificate; nil if the Secret has none, or another key. The chain links it to an authority.
	leaf  *x509.Certificate
	chain []*x509.Certificate
}

func decode(data map[string][]byte) content {
	var c content
	if authorities, err := certutil.ParseCertsPEM(data[keyAuthorities]); err == nil {
		c.authorities = authorities
	}
	if len(c.authorities) > 0 {
		c.signer = signerOf(c.authorities[0], data[keyAuthorityKey])
	}
	if pair, err := tls.X509KeyPair(data[keyCertificate], data[keyPrivateKey]); err == nil {
		c.leaf = pair.Leaf
		if all, err := certutil.ParseCertsPEM(data[keyCertificate]); err == nil {
			c.chain = all[1:]
		}
	}
	return c
}

func signerOf(authority *x509.Certificate, pem []byte) crypto.Signer {
	key, err := keyutil.ParsePrivateKeyPEM(pem)
	if err != nil {
		return nil
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil
	}
	public, ok := signer.Public().(interface{ Equal(x crypto.PublicKey) bool })
	if !ok || !public.Equal(authority.PublicKey) {
		return nil
	}
	return signer
}

// stage is one step of a rotation.
type stage string

const (
	// settled: nothing to do yet.
	settled stage = ""
	// addAuthority creates an authority that clients trust in addition to the others.
	addAuthority stage = "AddAuthority"
	// issueCertificate issues a serving certificate signed by the newest authority.
	issueCertificate stage = "IssueCertificate"
	// dropAuthorities removes all authorities but the newest.
	dropAuthorities stage = "DropAuthorities"
)

// lifetime of a serving certificate. All other times derive from it.
type lifetime time.Duration

// ofAuthority outlives every certificate that the authority signs until it is replaced, after two thirds of its time.
func (l lifetime) ofAuthority() time.Duration { return 4 * time.Duration(l) }

// overlap is the shortest time of a stage. API servers and replicas follow within seconds.
func (l lifetime) overlap() time.Duration { return min(time.Hour, time.Duration(l)/12) }

// backdating allows for clocks that are late.
const backdating = time.Hour

func issued(c *x509.Certificate) time.Time { return c.NotBefore.Add(backdating) }

// expiring reports whether two thirds of the certificate's time are over.
func expiring(c *x509.Certificate, now time.Time) bool {
	return now.Sub(issued(c)) >= c.NotAfter.Sub(issued(c))*2/3
}

// next returns the next stage. Clients have trusted all authorities for the given time.
func (c content) next(now time.Time, host string, l lifetime, trusted time.Duration) stage {
	switch {
	case c.signer == nil || !now.Before(c.authorities[0].NotAfter):
		return addAuthority
	case !c.serves(now, host):
		return issueCertificate
	case expiring(c.authorities[0], now):
		return addAuthority
	case c.leaf.CheckSignatureFrom(c.authorities[0]) != nil:
		if trusted >= l.overlap() {
			return issueCertificate
		}
		return settled
	case expiring(c.leaf, now):
		return issueCertificate
	case len(c.authorities) > 1 && now.Sub(issued(c.leaf)) >= l.overlap():
		return dropAuthorities
	}
	return settled
}

// serves reports whether clients that trust the authorities accept the certificate.
func (c content) serves(now time.Time, host string) bool { return c.verify(now, host) == nil }

// verify returns why they do not.
func (c content) verify(now time.Time, host string) error {
	if c.leaf == nil {
		return errors.New("there is no certificate")
	}
	roots, chain := x509.NewCertPool(), x509.NewCertPool()
	for _, authority := range c.authorities {
		roots.AddCert(authority)
	}
	for _, link := range c.chain {
		chain.AddCert(link)
	}
	_, err := c.leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: chain, CurrentTime: now})
	return err
}

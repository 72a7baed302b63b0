// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// mostOlder authorities stay trusted in addition to a new one: that of the serving certificate, and that of one which a
// replica may still serve.
const mostOlder = 2

func take(s stage, data map[string][]byte, now time.Time, host string, l lifetime) (map[string][]byte, error) {
	changed := maps.Clone(data)
	if changed == nil {
		changed = map[string][]byte{}
	}
	c := decode(data)
	switch s {
	case addAuthority:
		certificate, key, err := newAuthority(now, l.ofAuthority())
		if err != nil {
			return nil, fmt.Errorf("creating a certificate authority: %w", err)
		}
		older := c.authorities[:min(len(c.authorities), mostOlder)]
		changed[keyAuthorities], changed[keyAuthorityKey] = append(certificate, encode(older...)...), key
	case issueCertificate:
		certificate, key, err := c.issue(now, host, time.Duration(l))
		if err != nil {
			return nil, fmt.Errorf("issuing a serving certificate: %w", err)
		}
		changed[keyCertificate], changed[keyPrivateKey] = certificate, key
	case dropAuthorities:
		changed[keyAuthorities] = encode(c.authorities[0])
	case settled:
	}
	return changed, nil
}

// newAuthority returns PEM of a certificate and its key.
func newAuthority(now time.Time, lasting time.Duration) (certificate, key []byte, err error) {
	template, err := newTemplate(fmt.Sprintf("pulsar-autoscaler@%d", now.Unix()), now, lasting)
	if err != nil {
		return nil, nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return sign(template, template, private, private)
}

// issue returns PEM of a serving certificate, signed by the newest authority, and its key.
func (c content) issue(now time.Time, host string, lasting time.Duration) (certificate, key []byte, err error) {
	template, err := newTemplate(host, now, lasting)
	if err != nil {
		return nil, nil, err
	}
	template.DNSNames = []string{host}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return c.sign(template)
}

func (c content) sign(template *x509.Certificate) (certificate, key []byte, err error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return sign(template, c.authorities[0], private, c.signer)
}

func newTemplate(name string, now time.Time, lasting time.Duration) (*x509.Certificate, error) {
	const bits = 127
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), bits))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdating), NotAfter: now.Add(lasting),
	}, nil
}

func sign(template, authority *x509.Certificate, private *ecdsa.PrivateKey, signer crypto.Signer) (
	certificate, key []byte, err error,
) {
	der, err := x509.CreateCertificate(rand.Reader, template, authority, private.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der}), key, nil
}

func encode(certificates ...*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, c := range certificates {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: c.Raw}))
	}
	return text.Bytes()
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// life is longer than any test, demo or benchmark, and short for files that are left behind.
const life = 7 * 24 * time.Hour

// Authority is a certificate authority. Its private key is in memory only.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Pair is a certificate and its key, both PEM; the key is PKCS #8, the only form that brokers read.
type Pair struct{ Certificate, Key string }

// DataURLs are the parameters of Pulsar's tls plugin with the pair inside.
func (p Pair) DataURLs() string {
	return "tlsCertFile:" + DataURL(p.Certificate) + ",tlsKeyFile:" + DataURL(p.Key)
}

// DataURL holds the content.
func DataURL(content string) string {
	return "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString([]byte(content))
}

// NewAuthority returns an authority of the given name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template := newTemplate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetInt64(now.UnixNano()), Subject: subject,
		// An hour back: clocks may be set while a demo runs.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life),
	}
}

// Pool trusts the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// PEM is the authority's certificate.
func (a *Authority) PEM() string { return encode("CERTIFICATE", a.certificate.Raw) }

// Server issues a serving certificate for host names and addresses, localhost and 127.0.0.1. The first is its name.
func (a *Authority) Server(hosts ...string) (Pair, error) { return a.issue(serving(hosts[0], hosts)) }

// Peer issues a certificate for serving that clients may use too.
func (a *Authority) Peer(name string, hosts ...string) (Pair, error) {
	template := serving(name, hosts)
	template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	return a.issue(template)
}

func serving(name string, hosts []string) *x509.Certificate {
	template := newTemplate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

// Client issues a client certificate. Its name is the role in Pulsar, and the user in Kubernetes with these groups.
func (a *Authority) Client(name string, groups ...string) (Pair, error) {
	template := newTemplate(pkix.Name{CommonName: name, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (Pair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", pkcs8)}, nil
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

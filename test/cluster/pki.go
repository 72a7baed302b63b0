// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// certificateLife is longer than any test, demo or benchmark, and short for files that are left behind.
const certificateLife = 7 * 24 * time.Hour

// authority is a certificate authority of one cluster. Its private key never reaches a file.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// certificate is a certificate with its key, both PEM.
type certificate struct {
	certPEM, keyPEM []byte
}

func newAuthority(name string) (*authority, error) {
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
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	return &authority{certificate: parsed, key: key}, nil
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetInt64(now.UnixNano()), Subject: subject,
		// An hour back: clocks may be set while a demo runs.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
	}
}

func (a *authority) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// client issues a client certificate. Kubernetes reads the common name as the user and the organization as its groups.
func (a *authority) client(user string, groups ...string) (certificate, error) {
	template := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// server issues a serving certificate for the host names, and for localhost and 127.0.0.1.
func (a *authority) server(hosts ...string) (certificate, error) {
	return a.issue(serving(hosts[0], hosts...))
}

// peer issues a certificate for serving that clients may use too.
func (a *authority) peer(name string, hosts ...string) (certificate, error) {
	template := serving(name, hosts...)
	template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	return a.issue(template)
}

func serving(name string, hosts ...string) *x509.Certificate {
	template := newTemplate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = append(slices.Clone(hosts), "localhost")
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return template
}

func (a *authority) issue(template *x509.Certificate) (certificate, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate{}, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return certificate{}, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return certificate{}, err
	}
	return certificate{certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM: keyPEM}, nil
}

// encodeKey uses SEC 1, because client-go's keyutil reads no elliptic public key from PKCS #8.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// write puts the pair into dir as name.crt and name.key.
func (c certificate) write(dir, name string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	err = errors.Join(os.WriteFile(certFile, c.certPEM, 0o600), os.WriteFile(keyFile, c.keyPEM, 0o600))
	if err != nil {
		return "", "", fmt.Errorf("writing the certificate of %s: %w", name, err)
	}
	return certFile, keyFile, nil
}

// identities are the certificates of one cluster.
type identities struct {
	ca, frontProxyCA                *authority
	apiServer, controllerManager    certificate // for serving
	admin, controllerUser, frontend certificate // for calling
	serviceAccountKey               []byte
}

func newIdentities() (ids identities, err error) {
	if ids.ca, err = newAuthority("kubernetes-ca"); err != nil {
		return ids, err
	}
	if ids.frontProxyCA, err = newAuthority("kubernetes-front-proxy-ca"); err != nil {
		return ids, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return ids, fmt.Errorf("making the key of the service accounts: %w", err)
	}
	if ids.serviceAccountKey, err = encodeKey(key); err != nil {
		return ids, err
	}
	issue := func(to *certificate, from func() (certificate, error)) {
		if err == nil {
			*to, err = from()
		}
	}
	issue(&ids.apiServer, func() (certificate, error) {
		template := serving("kubernetes", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
		template.IPAddresses = append(template.IPAddresses, net.IPv4(10, 0, 0, 1)) // Service kubernetes, for pods
		return ids.ca.issue(template)
	})
	issue(&ids.controllerManager, func() (certificate, error) { return ids.ca.server("kube-controller-manager") })
	issue(&ids.admin, func() (certificate, error) { return ids.ca.client("kubernetes-admin", "system:masters") })
	issue(&ids.controllerUser, func() (certificate, error) { return ids.ca.client("system:kube-controller-manager") })
	issue(&ids.frontend, func() (certificate, error) { return ids.frontProxyCA.client(frontProxyUser) })
	return ids, err
}

// write puts all files of the servers into dir.
func (ids identities) write(dir string) error {
	errs := []error{
		os.WriteFile(filepath.Join(dir, "ca.crt"), ids.ca.certPEM(), 0o600),
		os.WriteFile(filepath.Join(dir, "front-proxy-ca.crt"), ids.frontProxyCA.certPEM(), 0o600),
		os.WriteFile(filepath.Join(dir, "service-account.key"), ids.serviceAccountKey, 0o600),
	}
	for name, pair := range map[string]certificate{
		"apiserver": ids.apiServer, "controller-manager": ids.controllerManager, "front-proxy-client": ids.frontend,
	} {
		_, _, err := pair.write(dir, name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

// AllowedIssuersFlag is the flag of the programs that sets Config.AllowedIssuers; messages name it.
const AllowedIssuersFlag = "--allowed-oauth2-issuers"

const sourceTimeout = 5 * time.Second

// Source returns the credentials that a backlog.Cluster names by Access. It is called for every request to Pulsar, so
// it must cache; its errors are shown to users.
type Source interface {
	Credentials(ctx context.Context, access string) (backlog.Credentials, error)
	// Invalidate is called when Pulsar has refused these credentials. The source is then called again at once, since they
	// may have changed.
	Invalidate(access string)
}

// administering is what a Source may also be. Administered reports whether the program's administrator configured the
// named credentials, rather than an object of a user, and for which URLs, as backlog.ParseAdminURL returns them. Such
// credentials may be in files of the program, may call any issuer, and may be sent to these URLs whether or not the
// allowed hosts include them.
type administering interface {
	Administered(access string) (urls []string, is bool)
}

// material is the complete input of a session, with all files read. It is comparable.
type material struct {
	authparams.Params

	// roots has the PEM certificates of the brokers' CA; empty for the system's.
	roots string
	// insecure skips the check of the brokers' certificate, anyName only the check of its name.
	insecure, anyName bool
	// named is true if a backlog.Cluster named the credentials: they are not the program's own.
	named bool
}

// resolve returns the credentials of the name; the empty name is for the program's own.
func (c *Credentials) resolve(ctx context.Context, access string) (material, error) {
	if access == "" {
		return c.ownMaterial()
	}
	if c.source == nil {
		return material{}, errors.New("it needs credentials of its own, which this program does not look up")
	}
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	found, err := c.source.Credentials(ctx, access)
	if err != nil {
		return material{}, err
	}
	decoded, err := authparams.Parse(found.Plugin, found.Params)
	if err != nil {
		return material{}, err
	}
	if _, is := c.administered(access); is {
		decoded, err = readParams(decoded)
	} else {
		err = c.check(decoded)
	}
	if err != nil {
		return material{}, err
	}
	return material{
		Params: decoded, roots: found.TrustCerts, named: true,
		insecure: found.AllowInsecureConnection, anyName: found.SkipHostnameVerification,
	}, nil
}

func (c *Credentials) ownMaterial() (material, error) {
	decoded, err := c.own.params()
	if err == nil {
		decoded, err = readParams(decoded)
	}
	if err != nil {
		return material{}, err
	}
	return material{Params: decoded, roots: c.roots.Current()}, nil
}

// check refuses parameters with which an object of a user would make this program read its own files, or call an issuer
// that is not allowed.
func (c *Credentials) check(decoded authparams.Params) error {
	if key, path := decoded.File(); path != "" {
		return backlog.Errorf(backlog.ErrUnsupported,
			"%s names a file inside the function's pod, which the adapter cannot read: %s: "+
				"put its content into the Secret, or name a Secret for the adapter in the policy", key, backlog.Quote(path))
	}
	if decoded.Issuer != "" && !c.issuers[decoded.Issuer] {
		return backlog.Errorf(backlog.ErrHostNotAllowed, "%s is not an allowed OAuth2 issuer: add it to %s (value "+
			"pulsar.allowedOAuth2Issuers of the chart)",
			backlog.Quote(decoded.Issuer), AllowedIssuersFlag)
	}
	return nil
}

// administered reports whether the program's administrator configured the named credentials, and for which URLs.
func (c *Credentials) administered(access string) (urls []string, is bool) {
	a, ok := c.source.(administering)
	if !ok || access == "" {
		return nil, false
	}
	return a.Administered(access)
}

// certificates are the part that distinguishes connections to brokers.
func (m material) certificates() material {
	only := material{roots: m.roots, insecure: m.insecure, anyName: m.anyName}
	if m.Method == authparams.TLS {
		only.Method, only.Certificate, only.Key = m.Method, m.Certificate, m.Key
	}
	return only
}

func (m material) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.roots != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(m.roots)) {
			return nil, errors.New("the certificates to trust have none: they must be PEM with at least one")
		}
	}
	switch {
	case m.insecure:
		config.InsecureSkipVerify = true
	case m.anyName:
		config.InsecureSkipVerify = true // verifyChain verifies all but the name
		config.VerifyConnection = verifyChain(config.RootCAs)
	}
	if m.Method != authparams.TLS {
		return config, nil
	}
	pair, err := tls.X509KeyPair([]byte(m.Certificate.Content), []byte(m.Key.Content))
	if err != nil {
		// the cause may show a part of the key
		return nil, errors.New("tlsCertFile and tlsKeyFile must be a certificate and its key in PEM")
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// verifyChain verifies everything about a certificate except its name.
func verifyChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		intermediates := x509.NewCertPool()
		for _, certificate := range state.PeerCertificates[1:] {
			intermediates.AddCert(certificate)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
		return err
	}
}

// issuerTLSConfig is how an OAuth2 issuer is verified, which is never skipped: by the authorities that the parameters
// name, else by the system's and those of the brokers' certificates.
func (m material) issuerTLSConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	pem := m.IssuerRoots.Content
	switch {
	case pem != "":
		config.RootCAs = x509.NewCertPool()
	case m.roots != "":
		pem = m.roots
		var err error
		if config.RootCAs, err = x509.SystemCertPool(); err != nil {
			config.RootCAs = x509.NewCertPool() // a machine without any
		}
	default:
		return config, nil
	}
	if !config.RootCAs.AppendCertsFromPEM([]byte(pem)) {
		return nil, errors.New("trustCertsFilePath has no certificate: it must be PEM with at least one")
	}
	return config, nil
}

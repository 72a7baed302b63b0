// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

// Authority is a certificate authority for programs beside the cluster that use TLS with each other.
type Authority struct {
	authority *identity.Authority
	dir       string
}

// NewAuthority creates a certificate authority with its certificate in its directory as ca.crt. The name is one path
// element; another authority of that name is replaced. Its key is in no file.
func (c *Cluster) NewAuthority(name string) (*Authority, error) {
	own, err := identity.NewAuthority(name)
	if err != nil {
		return nil, err
	}
	a := &Authority{authority: own, dir: filepath.Join(c.dir, "pki", name)}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", name, err)
	}
	if err := os.WriteFile(a.CAFile(), []byte(own.PEM()), 0o600); err != nil {
		return nil, fmt.Errorf("writing the certificate of %s: %w", name, err)
	}
	return a, nil
}

// Dir has ca.crt and, for each name issued for, name.crt and name.key.
func (a *Authority) Dir() string { return a.dir }

// CAFile is the path of the authority's certificate.
func (a *Authority) CAFile() string { return filepath.Join(a.dir, "ca.crt") }

// Issue writes a certificate for servers and clients, for the host names, localhost and 127.0.0.1. A second call for
// the name replaces the files.
func (a *Authority) Issue(name string, hosts ...string) (certFile, keyFile string, err error) {
	pair, err := a.authority.Peer(name, hosts...)
	if err != nil {
		return "", "", err
	}
	return writePair(pair, a.dir, name)
}

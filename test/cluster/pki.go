// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/keyutil"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

// writePair puts the pair into dir as name.crt and name.key.
func writePair(pair identity.Pair, dir, name string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	err = errors.Join(os.WriteFile(certFile, []byte(pair.Certificate), 0o600),
		os.WriteFile(keyFile, []byte(pair.Key), 0o600))
	if err != nil {
		return "", "", fmt.Errorf("writing the certificate of %s: %w", name, err)
	}
	return certFile, keyFile, nil
}

// identities are the certificates of one cluster.
type identities struct {
	ca, frontProxyCA                *identity.Authority
	apiServer, controllerManager    identity.Pair // for serving
	admin, controllerUser, frontend identity.Pair // for calling
	serviceAccountKey               []byte
}

func newIdentities() (ids identities, err error) {
	if ids.ca, err = identity.NewAuthority("kubernetes-ca"); err != nil {
		return ids, err
	}
	if ids.frontProxyCA, err = identity.NewAuthority("kubernetes-front-proxy-ca"); err != nil {
		return ids, err
	}
	// SEC 1: the servers read no elliptic public key from PKCS #8.
	if ids.serviceAccountKey, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
		return ids, fmt.Errorf("making the key of the service accounts: %w", err)
	}
	issue := func(to *identity.Pair, from func() (identity.Pair, error)) {
		if err == nil {
			*to, err = from()
		}
	}
	issue(&ids.apiServer, func() (identity.Pair, error) {
		const service = "10.0.0.1" // Service kubernetes, for pods
		return ids.ca.Server("kubernetes", "kubernetes.default", "kubernetes.default.svc", service)
	})
	issue(&ids.controllerManager, func() (identity.Pair, error) { return ids.ca.Server("kube-controller-manager") })
	issue(&ids.admin, func() (identity.Pair, error) { return ids.ca.Client("kubernetes-admin", "system:masters") })
	issue(&ids.controllerUser, func() (identity.Pair, error) { return ids.ca.Client("system:kube-controller-manager") })
	issue(&ids.frontend, func() (identity.Pair, error) { return ids.frontProxyCA.Client(frontProxyUser) })
	return ids, err
}

// write puts all files of the servers into dir.
func (ids identities) write(dir string) error {
	errs := []error{
		os.WriteFile(filepath.Join(dir, "ca.crt"), []byte(ids.ca.PEM()), 0o600),
		os.WriteFile(filepath.Join(dir, "front-proxy-ca.crt"), []byte(ids.frontProxyCA.PEM()), 0o600),
		os.WriteFile(filepath.Join(dir, "service-account.key"), ids.serviceAccountKey, 0o600),
	}
	for name, pair := range map[string]identity.Pair{
		"apiserver": ids.apiServer, "controller-manager": ids.controllerManager, "front-proxy-client": ids.frontend,
	} {
		_, _, err := writePair(pair, dir, name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

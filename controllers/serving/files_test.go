// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// following is a follower on a fake API server, and its files.
type following struct {
	*bench
	follower *follower
}

func newFollowing(t *testing.T) following {
	t.Helper()
	b, dir := newBench(t, owner()), t.TempDir()
	return following{b, &follower{
		config: FollowConfig{
			APIServices: apiServices(), Ready: func() error { return b.ready },
			Files: Files{
				Authorities: filepath.Join(dir, keyAuthorities), Certificate: filepath.Join(dir, keyCertificate),
				Key: filepath.Join(dir, keyPrivateKey),
			},
		},
		clients: b.clients,
	}}
}

// write writes the files of the data.
func (f following) write(t *testing.T, data map[string][]byte) {
	t.Helper()
	dir := filepath.Dir(f.follower.config.Files.Key)
	for key, content := range data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, key), content, 0o600))
	}
}

func TestTheAPIServicesTrustTheFile(t *testing.T) {
	f := newFollowing(t)
	first := taken(t, nil, start(), addAuthority, issueCertificate)
	f.write(t, first)
	require.NoError(t, f.follower.publish(t.Context(), logr.Discard(), start()))
	require.Equal(t, string(first[keyAuthorities]), string(f.apiService(t, "v1beta1").Spec.CABundle))
	require.Len(t, f.apiService(t, "v1beta2").GetOwnerReferences(), 1)

	both := taken(t, first, start(), addAuthority)
	f.write(t, both)
	require.NoError(t, f.follower.publish(t.Context(), logr.Discard(), start()))
	require.Equal(t, string(both[keyAuthorities]), string(f.apiService(t, "v1beta2").Spec.CABundle), "both are trusted")
}

func TestFilesThatDoNotFitChangeNothing(t *testing.T) {
	first := taken(t, nil, start(), addAuthority, issueCertificate)
	other := taken(t, nil, start(), addAuthority, issueCertificate)
	tests := map[string]struct {
		change map[string][]byte
		now    time.Time
		want   string
	}{
		"another authority than the certificate's": {
			map[string][]byte{keyAuthorities: other[keyAuthorities]},
			start(),
			"tls.crt for adapter.pulsar-autoscaler.svc: x509: certificate signed by unknown authority",
		},
		"another certificate than the key's": {
			map[string][]byte{keyCertificate: other[keyCertificate]}, start(), "private key does not match public key",
		},
		"a certificate that has expired": {
			nil, start().Add(2 * time.Duration(month)), "certificate has expired",
		},
		"no authority": {
			map[string][]byte{keyAuthorities: []byte("none")}, start(), "ca.crt has no certificate in PEM",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFollowing(t)
			f.write(t, first)
			require.NoError(t, f.follower.publish(t.Context(), logr.Discard(), start()))
			f.write(t, test.change)
			require.ErrorContains(t, f.follower.publish(t.Context(), logr.Discard(), test.now), test.want)
			require.Equal(t, string(first[keyAuthorities]), string(f.apiService(t, "v1beta1").Spec.CABundle))
		})
	}
	t.Run("a missing file", func(t *testing.T) {
		require.ErrorIs(t, newFollowing(t).follower.publish(t.Context(), logr.Discard(), start()), os.ErrNotExist)
	})
}

func TestAnIntermediateAuthorityMayBeInTheCertificate(t *testing.T) {
	data := taken(t, nil, start(), addAuthority, issueCertificate)
	between := decode(data).authorities[0]
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotBefore: between.NotBefore,
		NotAfter: between.NotAfter, IsCA: true, BasicConstraintsValid: true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	authority, _, err := sign(root, root, key, key)
	require.NoError(t, err)
	link, err := x509.CreateCertificate(rand.Reader, between, root, between.PublicKey, key)
	require.NoError(t, err)

	data[keyAuthorities] = authority
	require.False(t, decode(data).serves(start(), host))
	chained := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: link})
	data[keyCertificate] = append(data[keyCertificate], chained...)
	require.True(t, decode(data).serves(start(), host))
}

func TestAnAuthorityThatIsRenewedWithItsKeyStaysTrusted(t *testing.T) {
	data := taken(t, nil, start(), addAuthority, issueCertificate)
	old := decode(data)
	later := start().Add(time.Duration(month))
	template := *old.authorities[0]
	template.SerialNumber, template.NotBefore = big.NewInt(2), later
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, template.PublicKey, old.signer)
	require.NoError(t, err)
	before := data[keyAuthorities]
	data[keyAuthorities] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	data = taken(t, data, later, issueCertificate)
	require.True(t, decode(data).serves(later, host))
	data[keyAuthorities] = before
	require.True(t, decode(data).serves(later, host), "by clients that have the authority as it was")
}

func TestInsecureAPIServicesVerifyNothing(t *testing.T) {
	f := newFollowing(t)
	services := apiServices()
	services.Insecure = true
	f.follower.config.APIServices, f.follower.clients = services, newRegistrar(services, f.client)
	require.NoError(t, f.follower.publish(t.Context(), logr.Discard(), start()))
	spec := f.apiService(t, "v1beta1").Spec
	require.True(t, spec.InsecureSkipTLSVerify)
	require.Nil(t, spec.CABundle)
	f.applied = 0
	require.NoError(t, f.follower.publish(t.Context(), logr.Discard(), start()))
	require.Zero(t, f.applied, "what is as it should be is not written")

	services.Insecure = false
	require.NoError(t, newRegistrar(services, f.client).publish(t.Context(), logr.Discard(),
		taken(t, nil, start(), addAuthority)))
	require.False(t, f.apiService(t, "v1beta1").Spec.InsecureSkipTLSVerify, "a certificate is verified from then on")
}

func TestTheFilesAreFollowedOnceReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t)
		f.write(t, taken(t, nil, time.Now(), addAuthority, issueCertificate))
		var ready atomic.Bool
		f.follower.config.Ready = func() error {
			if !ready.Load() {
				return errors.New("not yet")
			}
			return nil
		}
		var lines bytes.Buffer
		logger := funcr.New(func(_, line string) { lines.WriteString(line + "\n") }, funcr.Options{})
		ctx, stop := context.WithCancel(log.IntoContext(t.Context(), logger))
		done := make(chan error, 1)
		go func() { done <- f.follower.Start(ctx) }()
		time.Sleep(time.Minute)
		require.Nil(t, f.apiService(t, "v1beta1"), "no APIService before requests are answered")
		ready.Store(true)
		time.Sleep(retryInterval + time.Second)
		require.NotNil(t, f.apiService(t, "v1beta1"))

		f.write(t, map[string][]byte{keyAuthorities: []byte("none")})
		time.Sleep(time.Minute)
		good := taken(t, nil, time.Now(), addAuthority, issueCertificate)
		f.write(t, good)
		time.Sleep(filesInterval + time.Second)
		require.Equal(t, string(good[keyAuthorities]), string(f.apiService(t, "v1beta1").Spec.CABundle))
		stop()
		require.NoError(t, <-done)
		require.Equal(t, 1, strings.Count(lines.String(), "updating the APIServices"), "a problem is logged once")
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	host  = "adapter.pulsar-autoscaler.svc"
	month = lifetime(30 * 24 * time.Hour)
)

func start() time.Time { return time.Date(2026, time.November, 23, 8, 0, 0, 0, time.UTC) }

// taken is the data after the given stages, carried out at once.
func taken(t *testing.T, data map[string][]byte, now time.Time, stages ...stage) map[string][]byte {
	t.Helper()
	for _, s := range stages {
		var err error
		data, err = take(s, data, now, host, month)
		require.NoError(t, err)
	}
	return data
}

func TestStages(t *testing.T) {
	first := taken(t, nil, start(), addAuthority, issueCertificate)
	// long is when an authority has used more than two thirds of its lifetime.
	long := start().Add(month.ofAuthority() * 3 / 4)
	renewed := taken(t, first, long, issueCertificate)
	two := taken(t, renewed, long, addAuthority)
	follow := taken(t, two, long, issueCertificate)
	broken := map[string][]byte{keyAuthorities: []byte("no")}
	without := func(data map[string][]byte, key string) map[string][]byte {
		rest := maps.Clone(data)
		delete(rest, key)
		return rest
	}
	other := taken(t, nil, start(), addAuthority, issueCertificate)
	mixed := maps.Clone(first)
	mixed[keyPrivateKey] = other[keyPrivateKey]
	foreign := maps.Clone(first)
	foreign[keyCertificate], foreign[keyPrivateKey] = other[keyCertificate], other[keyPrivateKey]
	tests := map[string]struct {
		data    map[string][]byte
		now     time.Time
		trusted time.Duration
		want    stage
	}{
		"creates an authority first":                    {nil, start(), 0, addAuthority},
		"replaces an invalid certificate":               {broken, start(), 0, addAuthority},
		"issues a certificate at once for the first":    {taken(t, nil, start(), addAuthority), start(), 0, issueCertificate},
		"keeps a valid certificate":                     {first, start().Add(time.Hour), 0, settled},
		"keeps a young certificate":                     {first, start().Add(19 * 24 * time.Hour), 0, settled},
		"renews a certificate after two thirds":         {first, start().Add(20 * 24 * time.Hour), 0, issueCertificate},
		"replaces a certificate that has expired":       {first, start().Add(31 * 24 * time.Hour), 0, issueCertificate},
		"replaces a certificate of another key":         {mixed, start(), 0, issueCertificate},
		"replaces one that no authority signed":         {foreign, start(), 0, issueCertificate},
		"replaces an authority after two thirds":        {renewed, long, 24 * time.Hour, addAuthority},
		"replaces an authority without its key":         {without(first, keyAuthorityKey), start(), 0, addAuthority},
		"replaces an authority that has expired":        {first, start().Add(month.ofAuthority()), 0, addAuthority},
		"waits until clients trust the new authority":   {two, long.Add(24 * time.Hour), 59 * time.Minute, settled},
		"then serves a certificate of it":               {two, long.Add(time.Hour), time.Hour, issueCertificate},
		"keeps the old authority while replicas follow": {follow, long.Add(59 * time.Minute), time.Hour, settled},
		"then drops the old authority":                  {follow, long.Add(time.Hour), 0, dropAuthorities},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, decode(test.data).next(test.now, host, month, test.trusted))
		})
	}
	t.Run("replaces a certificate of another Service", func(t *testing.T) {
		require.Equal(t, issueCertificate, decode(first).next(start(), "another.namespace.svc", month, 0))
	})
}

// TestEveryClientTrustsEveryReplica simulates two years, with clients and replicas that follow late.
func TestEveryClientTrustsEveryReplica(t *testing.T) {
	const tick, late = 20 * time.Minute, 2 // ticks
	var history []map[string][]byte        // of the Secret, one a tick
	data, since, rotations := map[string][]byte(nil), start(), 0
	at := func(ticks int) map[string][]byte { return history[max(0, len(history)-1-ticks)] }
	for now, quiet := start(), 0; now.Before(start().Add(2 * 365 * 24 * time.Hour)); quiet++ {
		now = now.Add(tick)
		if quiet > 6 { // no stage is due for days
			now = now.Add(24 * time.Hour)
		}
		s := decode(data).next(now, host, month, now.Sub(since))
		if s == addAuthority {
			since, rotations = now, rotations+1
		}
		if s != settled {
			data, quiet = taken(t, data, now, s), 0
		}
		if history = append(history, data); len(history) < 4 {
			continue // before the first certificate
		}
		for _, trusting := range []int{0, late} {
			for _, following := range []int{0, late} {
				requireTrust(t, at(trusting)[keyAuthorities], at(following), now)
			}
		}
		require.LessOrEqual(t, len(decode(data).authorities), 2)
	}
	require.Greater(t, rotations, 5)
}

func requireTrust(t *testing.T, bundle []byte, replica map[string][]byte, now time.Time) {
	t.Helper()
	pair, err := tls.X509KeyPair(replica[keyCertificate], replica[keyPrivateKey])
	if err != nil {
		return // the first ticks
	}
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(bundle))
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
	require.NoError(t, err, now)
}

// FuzzDecode: from any content of the Secret, a few stages lead to a usable one.
func FuzzDecode(f *testing.F) {
	good, err := take(addAuthority, nil, start(), host, month)
	require.NoError(f, err)
	f.Add(good[keyAuthorities], good[keyAuthorityKey], []byte(nil), []byte(nil))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("k"), []byte("c"), []byte("p"))
	f.Fuzz(func(t *testing.T, authorities, authorityKey, certificate, key []byte) {
		data := map[string][]byte{
			keyAuthorities: authorities, keyAuthorityKey: authorityKey, keyCertificate: certificate, keyPrivateKey: key,
		}
		for range 3 {
			data = taken(t, data, start(), decode(data).next(start(), host, month, 0))
		}
		require.True(t, decode(data).serves(start(), host))
	})
}

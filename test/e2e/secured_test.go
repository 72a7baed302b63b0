// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/distribution"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// Names on a secured broker. A role has the permission of its name on the namespace, with exceptions below.
const (
	securedTopic = "persistent://private/work/orders"
	audience     = "pulsar"

	passwordRole, password = "password-reader", "open sesame"
	certificateRole        = "certificate-reader"
	clientRole, secret     = "client-reader", "client s3cret"
)

// brokerLines include the broker's message about the last credentials.
const brokerLines = 60

// secured is a broker that requires authentication: by tokens, passwords, certificates and an OAuth2 issuer, with roles
// of different permissions on one namespace. strictAuthMethod, which 4.2 has, makes it require the method's name too.
type secured struct {
	*broker.Broker

	// https is the admin service, and ssl the brokers, over TLS.
	https, ssl string

	authority *identity.Authority
	tokens    *identity.Signer
	issuer    *identity.Issuer
	// openID is true if the broker requests the issuer's keys itself; otherwise it has them in its configuration.
	openID bool
}

func newSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{}
	var err error
	s.authority, err = identity.NewAuthority("pulsar-test-ca")
	require.NoError(t, err)
	s.tokens, err = identity.NewSigner()
	require.NoError(t, err)
	dist, err := distribution.Fetch(t.Context(), "", os.Stderr)
	require.NoError(t, err)
	found, err := filepath.Glob(filepath.Join(dist.Lib, "*broker-auth-oidc*.jar"))
	require.NoError(t, err)
	s.openID = len(found) > 0 // only the server's tarball has it
	signer := s.tokens
	if s.openID {
		signer, err = identity.NewSigner()
		require.NoError(t, err)
	}
	s.issuer, err = identity.NewIssuer(s.authority, signer, map[string]string{clientRole: secret})
	require.NoError(t, err)
	t.Cleanup(s.issuer.Close)

	ports, err := proc.FreePorts(2)
	require.NoError(t, err)
	s.https, s.ssl = fmt.Sprintf("https://127.0.0.1:%d", ports[0]), fmt.Sprintf("pulsar+ssl://127.0.0.1:%d", ports[1])
	admin := s.token(t, "admin", time.Hour)
	settings := s.settings(t, admin)
	settings["webServicePortTls"], settings["brokerServicePortTls"] = fmt.Sprint(ports[0]), fmt.Sprint(ports[1])
	s.Broker, err = broker.Start(t.Context(), broker.Config{Token: admin, Settings: settings, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the broker printed:\n%s", s.LogTail(brokerLines))
		}
		_ = s.Discard() // the test has ended
	})
	s.grant(t)
	return s
}

// settings are those of Pulsar's documentation for each authentication method.
func (s *secured) settings(t *testing.T, admin string) map[string]string {
	t.Helper()
	const class = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
	providers := []string{class + "Token", class + "Basic", class + "Tls"}
	pair, err := s.authority.Server("broker")
	require.NoError(t, err)
	key, err := s.tokens.PublicKey()
	require.NoError(t, err)
	settings := map[string]string{
		"authenticationEnabled": "true", "authorizationEnabled": "true", "strictAuthMethod": "true",
		"statsUpdateFrequencyInSecs":           "1", // by default its statistics of all topics are a minute old
		"superUserRoles":                       "admin",
		"tokenPublicKey":                       key,
		"brokerClientAuthenticationPlugin":     "org.apache.pulsar.client.impl.auth.AuthenticationToken",
		"brokerClientAuthenticationParameters": "token:" + admin,
		// created by: openssl passwd -apr1 -salt abcdefgh 'open sesame'
		"basicAuthConf": "file://" +
			file(t, "htpasswd", passwordRole+":$apr1$abcdefgh$T64oOxnD8c28.dQa.2Lty1\n"),
		"tlsCertificateFilePath":               file(t, "broker.crt", pair.Certificate),
		"tlsKeyFilePath":                       file(t, "broker.key", pair.Key),
		"tlsTrustCertsFilePath":                file(t, "ca.crt", s.authority.PEM()),
		"tlsRequireTrustedClientCertOnConnect": "false",
	}
	if s.openID {
		providers = append(providers, class[:strings.LastIndex(class, ".")]+".oidc.AuthenticationProviderOpenID")
		settings["openIDAllowedTokenIssuers"] = s.issuer.URL()
		settings["openIDAllowedAudiences"] = audience
		settings["openIDTokenIssuerTrustCertsFilePath"] = settings["tlsTrustCertsFilePath"]
	}
	settings["authenticationProviders"] = strings.Join(providers, ",")
	return settings
}

// grant creates the namespace with its topic, and grants the roles their permissions.
func (s *secured) grant(t *testing.T) {
	t.Helper()
	s.demand(t, http.MethodPut, "/admin/v2/tenants/private", `{"allowedClusters":["standalone"],"adminRoles":[]}`)
	s.demand(t, http.MethodPut, "/admin/v2/namespaces/private/work", `{}`)
	require.NoError(t, s.CreateTopic(t.Context(), securedTopic, 2))
	for role, action := range map[string]string{
		"consume": "consume", "produce": "produce", "functions": "functions", "sinks": "sinks", "sources": "sources",
		passwordRole: `consume","produce`, certificateRole: `consume","produce`, clientRole: `consume","produce`,
	} {
		s.demand(t, http.MethodPost, "/admin/v2/namespaces/private/work/permissions/"+role, `["`+action+`"]`)
	}
}

func (s *secured) demand(t *testing.T, method, path, body string) {
	t.Helper()
	_, err := s.Demand(t.Context(), method, path, []byte(body))
	require.NoError(t, err)
}

func (s *secured) token(t *testing.T, role string, life time.Duration) string {
	t.Helper()
	signed, err := s.tokens.Token(role, life)
	require.NoError(t, err)
	return signed
}

// reader returns a reader of Pulsar that may call this broker, and closes it after the test.
func (s *secured) reader(t *testing.T, config pulsar.Config) *pulsar.Source {
	t.Helper()
	config.Registerer = prometheus.NewRegistry()
	config.RequestTimeout = requestTimeout
	config.AllowedHosts = append(config.AllowedHosts, s.AdminURL(), s.https, s.ServiceURL(), s.ssl)
	source, err := pulsar.New(config)
	require.NoError(t, err)
	t.Cleanup(source.Close)
	return source
}

// fetch reads the topic with the credentials of the name, over TLS or not.
func (s *secured) fetch(t *testing.T, source *pulsar.Source, adminURL, access string) error {
	t.Helper()
	sample, err := source.Fetch(t.Context(), backlog.Topic{
		Cluster: backlog.Cluster{AdminURL: adminURL, Access: access}, Name: securedTopic,
	}, backlog.Request{Detail: backlog.Slim})

	if err == nil {
		require.Len(t, sample.Partitions, 2)
	}
	return err
}

// watch subscribes to a partition of the topic with the credentials of the name, over TLS or not.
func (s *secured) watch(t *testing.T, source *pulsar.Source, adminURL, access string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	subscribed := false
	_, err := source.Watch(ctx, securedPartition(adminURL, access), func() { subscribed = true; cancel() })
	require.NoError(t, err)
	require.True(t, subscribed)
}

func securedPartition(adminURL, access string) backlog.Topic {
	return backlog.Topic{
		Cluster: backlog.Cluster{AdminURL: adminURL, Access: access}, Name: securedTopic + "-partition-0",
	}
}

// secrets is an auth.Source like the adapter's, with Secrets in memory. Like a cache, it reads changes only after an
// invalidation.
type secrets struct {
	mu sync.Mutex
	// cached and stored are guarded by mu.
	cached, stored map[string]backlog.Credentials
}

func newSecrets(stored map[string]backlog.Credentials) *secrets {
	return &secrets{stored: stored, cached: map[string]backlog.Credentials{}}
}

func (s *secrets) Credentials(_ context.Context, access string) (backlog.Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.cached[access]; !known {
		s.cached[access] = s.stored[access]
	}
	return s.cached[access], nil
}

func (s *secrets) Invalidate(access string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cached, access)
}

func (s *secrets) store(access string, to backlog.Credentials) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored[access] = to
}

// file writes a file for the test.
func file(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

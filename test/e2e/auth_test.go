// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

// TestCoreSignalsAuthTokens tests tokens on a real broker, with the errors of each.
func TestCoreSignalsAuthTokens(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a real broker")
	}
	testTokens(t, newSecured(t))
}

// TestSignalsAuth tests the other authentication methods on one real broker, with the errors of each.
func TestSignalsAuth(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a real broker")
	}
	s := newSecured(t)
	t.Run("rotation", func(t *testing.T) { testRotation(t, s) })
	t.Run("password", func(t *testing.T) { testPasswords(t, s) })
	t.Run("certificate", func(t *testing.T) { testCertificates(t, s) })
	t.Run("oauth2", func(t *testing.T) { testOAuth2(t, s) })
	t.Run("redirect", func(t *testing.T) { testRedirects(t, s) })
	t.Run("rights", func(t *testing.T) { testRights(t, s) })
	t.Run("benchmark", func(t *testing.T) { testBenchSecured(t, s) })
}

// attempt is one fetch with named credentials; text has BROKER for the broker's host.
type attempt struct {
	credentials backlog.Credentials
	reason      error
	text        string
}

func (s *secured) try(t *testing.T, adminURL string, config pulsar.Config, attempts map[string]attempt) {
	t.Helper()
	stored := map[string]backlog.Credentials{}
	for name, a := range attempts {
		stored[name] = a.credentials
	}
	config.Credentials = newSecrets(stored)
	source := s.reader(t, config)
	_, host, _ := strings.Cut(adminURL, "://")
	for name, a := range attempts {
		t.Run(name, func(t *testing.T) {
			err := s.fetch(t, source, adminURL, name)
			if a.reason == nil {
				require.NoError(t, err)
				s.watch(t, source, adminURL, name)
				return
			}
			_, refused := source.Watch(t.Context(), securedPartition(adminURL, name), nil)
			require.ErrorIs(t, refused, a.reason)
			require.ErrorIs(t, err, a.reason)
			require.ErrorContains(t, err, strings.ReplaceAll(a.text, "BROKER", host))
		})
	}
}

const (
	notBelieved  = "credentials refused: BROKER does not accept the token"
	otherKey     = notBelieved + ", which has not expired: is it signed with another key?"
	expiredToken = notBelieved + ", which expired at "
	refusedToken = notBelieved + ": is it expired, or signed with another key?"
)

func testTokens(t *testing.T, s *secured) {
	stranger, err := identity.NewSigner()
	require.NoError(t, err)
	forged, err := stranger.Token("admin", time.Hour)
	require.NoError(t, err)
	token := func(text string) backlog.Credentials { return backlog.Credentials{Plugin: "token", Params: text} }
	s.try(t, s.AdminURL(), pulsar.Config{}, map[string]attempt{
		"a good token does":             {token("token:" + s.token(t, "consume", time.Hour)), nil, ""},
		"a good token in JSON does":     {token(`{"token":"` + s.token(t, "consume", time.Hour) + `"}`), nil, ""},
		"one that was signed by others": {token(forged), backlog.ErrUnauthenticated, otherKey},
		"one that has expired": {
			token(s.token(t, "consume", -time.Minute)), backlog.ErrUnauthenticated,
			expiredToken,
		},
		"one that is none":                {token("garbage"), backlog.ErrUnauthenticated, refusedToken},
		"one of a role without a right":   {token(s.token(t, "nobody", time.Hour)), backlog.ErrForbidden, missingConsume},
		"one of a role with other rights": {token(s.token(t, "functions", time.Hour)), backlog.ErrForbidden, missingConsume},
		"none at all": {
			backlog.Credentials{},
			backlog.ErrUnauthenticated,
			"credentials refused: BROKER requires credentials and those that were named have none: name a Secret with a token",
		},
	})
}

const missingConsume = `permission missing: BROKER says "Unauthorized to validateTopicOperation for operation ` +
	`[LOOKUP] on topic [` + securedTopic + `]": ` +
	"grant consume on namespace private/work to the role of the credentials"

// testRotation lets a token expire while it is in use, as projected tokens and rotated Secrets do.
func testRotation(t *testing.T, s *secured) {
	// The first read of a broker is slow.
	warm := s.reader(t, pulsar.Config{Own: auth.Own{TokenFile: file(t, "token", s.token(t, "consume", time.Hour))}})
	require.NoError(t, s.fetch(t, warm, s.AdminURL(), ""))
	// The token must be used twice before it ends, which a busy machine may need more time for.
	var tokenFile string
	var named *secrets
	var source *pulsar.Source
	for life := 4 * time.Second; ; life *= 2 {
		old := s.token(t, "consume", life)
		tokenFile = file(t, "token", old)
		named = newSecrets(map[string]backlog.Credentials{"secret": {Plugin: "token", Params: old}})
		source = s.reader(t, pulsar.Config{Own: auth.Own{TokenFile: tokenFile}, Credentials: named})
		err := errors.Join(s.fetch(t, source, s.AdminURL(), ""), s.fetch(t, source, s.AdminURL(), "secret"))
		if err == nil {
			break
		}
		require.ErrorContains(t, err, "which expired at ", "after %s", life)
		require.Less(t, life, time.Hour)
	}
	eventually(t, "the token to expire", func() bool { return s.fetch(t, source, s.AdminURL(), "") != nil })
	require.ErrorContains(t, s.fetch(t, source, s.AdminURL(), ""), "does not accept the token, which expired at ")
	require.ErrorIs(t, s.fetch(t, source, s.AdminURL(), "secret"), backlog.ErrUnauthenticated)

	fresh := s.token(t, "consume", time.Hour)
	require.NoError(t, os.WriteFile(tokenFile, []byte(fresh+"\n"), 0o600))
	named.store("secret", backlog.Credentials{Plugin: "token", Params: fresh})
	require.NoError(t, s.fetch(t, source, s.AdminURL(), ""), "the first fetch must use the new file")
	require.NoError(t, s.fetch(t, source, s.AdminURL(), "secret"), "the fetch that is refused must look again, and go on")
}

func testPasswords(t *testing.T, s *secured) {
	basic := func(text string) backlog.Credentials { return backlog.Credentials{Plugin: "basic", Params: text} }
	const refused = "credentials refused: BROKER does not accept the user and password: does the brokers' basicAuthConf " +
		"have them?"
	s.try(t, s.AdminURL(), pulsar.Config{}, map[string]attempt{
		"a good one does":         {basic(passwordRole + ":" + password), nil, ""},
		"a good one in JSON does": {basic(`{"userId":"` + passwordRole + `","password":"` + password + `"}`), nil, ""},
		"a wrong password":        {basic(passwordRole + ":wrong"), backlog.ErrUnauthenticated, refused},
		"an unknown user":         {basic("stranger:" + password), backlog.ErrUnauthenticated, refused},
	})
	t.Run("the program's own from a file does", func(t *testing.T) {
		source := s.reader(t,
			pulsar.Config{Own: auth.Own{Plugin: "basic", ParamsFile: file(t, "params", passwordRole+":"+password)}})
		require.NoError(t, s.fetch(t, source, s.AdminURL(), ""))
	})
}

func (s *secured) certificate(t *testing.T, of *identity.Authority, role string) identity.Pair {
	t.Helper()
	pair, err := of.Client(role)
	require.NoError(t, err)
	return pair
}

func testCertificates(t *testing.T, s *secured) {
	strangers, err := identity.NewAuthority("pulsar-test-ca")
	require.NoError(t, err)
	shows := func(pair identity.Pair) backlog.Credentials {
		return backlog.Credentials{Plugin: "tls", Params: pair.DataURLs(), TrustCerts: s.authority.PEM()}
	}
	good := shows(s.certificate(t, s.authority, certificateRole))
	mistrusting := good
	mistrusting.TrustCerts = strangers.PEM()
	s.try(t, s.https, pulsar.Config{}, map[string]attempt{
		"a good one does": {good, nil, ""},
		"a token does over TLS too": {
			backlog.Credentials{
				Plugin: "token", Params: s.token(t, "consume", time.Hour),
				TrustCerts: s.authority.PEM(),
			}, nil, "",
		},
		"one of a role without a right": {
			shows(s.certificate(t, s.authority, "nobody")), backlog.ErrForbidden,
			missingConsume,
		},
		"one that others have signed": {
			shows(s.certificate(t, strangers, certificateRole)), backlog.ErrUnauthenticated,
			"credentials refused: BROKER does not accept the client certificate (tls: ", // the alert differs between versions
		},
		"a broker that is not to be trusted": {
			mistrusting, backlog.ErrUnreachable,
			"unreachable: BROKER for " + securedTopic +
				": its certificate is signed by an unknown authority: give the adapter the CA file",
		},
	})
	s.try(t, s.AdminURL(), pulsar.Config{}, map[string]attempt{
		"it cannot be shown without TLS": {
			good, backlog.ErrUnsupported,
			"not supported: a client certificate cannot be shown to http://BROKER: use the https port of the brokers",
		},
	})
	t.Run("the program's own files may change", func(t *testing.T) {
		stranger, trusted := s.certificate(t, strangers, certificateRole), s.certificate(t, s.authority, certificateRole)
		certFile, keyFile := file(t, "tls.crt", stranger.Certificate), file(t, "tls.key", stranger.Key)
		source := s.reader(t, pulsar.Config{
			Own: auth.Own{
				Plugin: "tls", CAFile: file(t, "ca.crt", s.authority.PEM()),
				ParamsFile: file(t, "params", "tlsCertFile:"+certFile+",tlsKeyFile:"+keyFile),
			},
		})
		require.ErrorIs(t, s.fetch(t, source, s.https, ""), backlog.ErrUnauthenticated)
		require.NoError(t, os.WriteFile(certFile, []byte(trusted.Certificate), 0o600))
		require.NoError(t, os.WriteFile(keyFile, []byte(trusted.Key), 0o600))
		require.NoError(t, s.fetch(t, source, s.https, ""))
	})
}

// client returns the parameters of the oauth2 plugin.
func (s *secured) client(t *testing.T, id, secret, audience string) backlog.Credentials {
	t.Helper()
	key, err := json.Marshal(map[string]string{
		"type": "client_credentials", "client_id": id, "client_secret": secret,
		"issuer_url": s.issuer.URL(),
	})
	require.NoError(t, err)
	params, err := json.Marshal(map[string]string{
		"issuerUrl": s.issuer.URL(), "privateKey": identity.DataURL(string(key)),
		"audience": audience,
	})
	require.NoError(t, err)
	return backlog.Credentials{
		Plugin: "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2", Params: string(
			params), TrustCerts: s.authority.PEM(),
	}
}

func testOAuth2(t *testing.T, s *secured) {
	t.Logf("the broker checks the issuer's tokens by OpenID Connect: %t", s.openID)
	attempts := map[string]attempt{
		"a good client does": {s.client(t, clientRole, secret, audience), nil, ""},
		"a wrong secret": {
			s.client(t, clientRole, "wrong", audience), backlog.ErrUnauthenticated,
			"credentials refused: nothing was sent to BROKER: OAuth2 issuer " + s.issuer.URL() +
				` refuses the client: "invalid_client no such client or secret"`,
		},
	}
	if s.openID {
		attempts["a wrong audience"] = attempt{
			s.client(t, clientRole, secret, "others"), backlog.ErrUnauthenticated,
			"credentials refused: BROKER does not accept the token of OAuth2 issuer " + s.issuer.URL() +
				": do the brokers trust that issuer and the audience?",
		}
	}
	s.try(t, s.AdminURL(), pulsar.Config{AllowedIssuers: []string{s.issuer.URL()}}, attempts)
	s.try(t, s.AdminURL(), pulsar.Config{}, map[string]attempt{
		"an issuer that nobody allowed": {
			s.client(t, clientRole, secret, audience), backlog.ErrHostNotAllowed,
			"host not allowed: nothing was sent to BROKER: " + s.issuer.URL() +
				" is not an allowed OAuth2 issuer: add it to --allowed-oauth2-issuers (value pulsar.allowedOAuth2Issuers of the chart)",
		},
	})
}

// testRedirects redirects requests, as a broker does that does not own a topic.
func testRedirects(t *testing.T, s *secured) {
	var to string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	t.Cleanup(front.Close)
	captured := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { captured++ }))
	t.Cleanup(elsewhere.Close)
	reader := func() *pulsar.Source { // a new one each time: it caches the owner of the topic
		return s.reader(t, pulsar.Config{
			Own: auth.Own{TokenFile: file(t, "token", s.token(t, "consume", time.Hour))}, AllowedHosts: []string{front.URL},
		})
	}
	to = s.AdminURL()
	require.NoError(t, s.fetch(t, reader(), front.URL, ""), "the owner must see the token too")
	to = elsewhere.URL
	require.ErrorIs(t, s.fetch(t, reader(), front.URL, ""), backlog.ErrHostNotAllowed)
	require.Zero(t, captured, "another host must see nothing")
}

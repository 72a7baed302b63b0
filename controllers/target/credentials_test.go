// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// fakeSecrets is an API server with Secrets of namespace media, by name and key.
type fakeSecrets struct {
	client.Reader
	named map[string]map[string]string
	fails error
	reads int
}

func (f *fakeSecrets) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	f.reads++
	if f.fails != nil {
		return f.fails
	}
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("reading a %T", object)
	}
	content, found := f.named[key.Name]
	if !found || key.Namespace != fixture.Namespace {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	secret.Data = map[string][]byte{}
	for k, v := range content {
		secret.Data[k] = []byte(v)
	}
	return nil
}

func testSecrets() *fakeSecrets {
	return &fakeSecrets{named: map[string]map[string]string{
		"token":   {"clientAuthenticationPlugin": fixture.TokenPlugin, "clientAuthenticationParameters": "token:hunter2\n"},
		"other":   {"clientAuthenticationPlugin": "token", "clientAuthenticationParameters": "token:hunter3"},
		"mounted": {"clientAuthenticationPlugin": "token", "clientAuthenticationParameters": "file:///var/run/token"},
		"mutual": {
			"clientAuthenticationPlugin":     "tls",
			"clientAuthenticationParameters": "tlsCertFile:/certs/tls.crt,tlsKeyFile:/certs/tls.key",
		},
		"empty":  {},
		"key":    {"key.json": `{"client_id":"me"}`},
		"ca":     {"ca.crt": "PEM"},
		"tls":    {"tlsAllowInsecureConnection": "false", "tlsHostnameVerificationEnable": "false"},
		"bundle": {"tlsTrustCertsFilePath": "/etc/ssl/ca.crt"},
	}}
}

func TestResolveCredentials(t *testing.T) {
	const http, https = "http://pulsar:8080", "https://pulsar:8443"
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "token", errors.New("no"))
	all := OwnCredentials{Authenticates: true}
	tests := map[string]struct {
		url     string
		policy  *v1alpha1.PulsarConnection
		pulsar  string
		own     OwnCredentials
		mode    FunctionCredentials
		fails   error
		want    backlog.Credentials
		isOwn   bool
		invalid string
	}{
		"no credentials at all": {isOwn: true},
		"the object's Secret": {
			pulsar: `{"authSecret":"token"}`, own: all,
			want: backlog.Credentials{Plugin: fixture.TokenPlugin, Params: "token:hunter2"},
		},
		"the policy's Secret takes precedence": {
			policy: &v1alpha1.PulsarConnection{AuthSecret: "other"}, pulsar: `{"authSecret":"token"}`,
			want: backlog.Credentials{Plugin: "token", Params: "token:hunter3"},
		},
		"an authConfig takes precedence over the Secret": {
			pulsar: `{"authSecret":"token","authConfig":{"genericAuth":{"clientAuthenticationPlugin":"basic","clientAuthenticationParameters":"a:b"}}}`,
			want:   backlog.Credentials{Plugin: "basic", Params: "a:b"},
		},
		"oauth2 gets the key inline": {
			pulsar: `{"authConfig":{"oauth2Config":{"issuerUrl":"https://issuer","audience":"aud","keySecretName":"key","keySecretKey":"key.json"}}}`,
			want: backlog.Credentials{Plugin: "oauth2", Params: `{"type":"client_credentials","issuerUrl":"https://issuer",` +
				`"privateKey":"data:application/json;base64,eyJjbGllbnRfaWQiOiJtZSJ9","audience":"aud"}`},
		},
		"oauth2 takes precedence over both": {
			pulsar: `{"authSecret":"missing","authConfig":{"oauth2Config":{"issuerUrl":"https://issuer","keySecretName":"key","keySecretKey":"key.json"},` +
				`"genericAuth":{"clientAuthenticationPlugin":"basic","clientAuthenticationParameters":"a:b"}}}`,
			want: backlog.Credentials{Plugin: "oauth2", Params: `{"type":"client_credentials","issuerUrl":"https://issuer",` +
				`"privateKey":"data:application/json;base64,eyJjbGllbnRfaWQiOiJtZSJ9"}`},
		},
		"oauth2 without the key": {
			pulsar:  `{"authConfig":{"oauth2Config":{"issuerUrl":"https://issuer","keySecretName":"key","keySecretKey":"other.json"}}}`,
			invalid: `Secret key, which spec.pulsar.authConfig.oauth2Config.keySecretName names, has no key "other.json"`,
		},
		"https uses certificates": {
			url: https, pulsar: `{"authSecret":"token","tlsConfig":{"enabled":true,"hostnameVerification":true,"certSecretName":"ca","certSecretKey":"ca.crt"}}`,
			want: backlog.Credentials{Plugin: fixture.TokenPlugin, Params: "token:hunter2", TrustCerts: "PEM"},
		},
		"http ignores certificates": {
			url: http, pulsar: `{"authSecret":"token","tlsConfig":{"enabled":true,"certSecretName":"missing","certSecretKey":"ca.crt"},"tlsSecret":"missing"}`,
			want: backlog.Credentials{Plugin: fixture.TokenPlugin, Params: "token:hunter2"},
		},
		"the policy's certificates take precedence and are verified": {
			url: https, policy: &v1alpha1.PulsarConnection{TLSConfig: &v1alpha1.PulsarTLSConfig{
				CertSecretName: "ca",
				CertSecretKey:  "ca.crt",
			}},
			pulsar: `{"authSecret":"token","tlsConfig":{"enabled":true,"allowInsecure":true}}`,
			want:   backlog.Credentials{Plugin: fixture.TokenPlugin, Params: "token:hunter2", TrustCerts: "PEM"},
		},
		"an enabled tlsConfig takes precedence over the tlsSecret": {
			url: https, pulsar: `{"tlsSecret":"missing","tlsConfig":{"enabled":true,"allowInsecure":true}}`,
			want: backlog.Credentials{AllowInsecureConnection: true, SkipHostnameVerification: true},
		},
		"a disabled tlsConfig does not": {
			url: https, pulsar: `{"tlsSecret":"tls","tlsConfig":{"enabled":false,"certSecretName":"missing"}}`,
			want: backlog.Credentials{SkipHostnameVerification: true},
		},
		"the adapter's credentials replace certificates alone": {
			url: https, pulsar: `{"tlsSecret":"tls"}`, own: all,
			isOwn: true,
		},
		"an insecure object does not affect the adapter's own": {
			url: https, pulsar: `{"tlsConfig":{"enabled":true,"allowInsecure":true}}`, own: all, isOwn: true,
		},
		"missing certificates do not block the adapter's own": {
			url: https, pulsar: `{"tlsSecret":"missing"}`,
			own: all, isOwn: true,
		},
		"the adapter's credentials replace an empty Secret": {
			pulsar: `{"authSecret":"empty"}`, own: all,
			isOwn: true,
		},
		"an empty Secret is anonymous": {pulsar: `{"authSecret":"empty"}`},
		"a file in the pods": {
			pulsar:  `{"authSecret":"mounted"}`,
			invalid: "the credentials are in /var/run/token inside of the pods, which the adapter cannot read: put",
		},
		"a file in the pods, with the adapter's credentials": {pulsar: `{"authSecret":"mounted"}`, own: all, isOwn: true},
		"files of certificates in the pods": {
			pulsar:  `{"authSecret":"mutual"}`,
			invalid: "/certs/tls.crt inside of the pods",
		},
		"a key in the pods, inline": {
			pulsar:  `{"authConfig":{"genericAuth":{"clientAuthenticationPlugin":"oauth2","clientAuthenticationParameters":"{\"privateKey\":\"file:///etc/key\"}"}}}`,
			invalid: "file:///etc/key inside of the pods",
		},
		"trusted certificates in the pods": {
			url: https, pulsar: `{"tlsSecret":"bundle"}`,
			invalid: "--pulsar-ca-file",
		},
		"trusted certificates in the pods, with the adapter's": {
			url: https, pulsar: `{"tlsSecret":"bundle"}`,
			own: OwnCredentials{TrustsMore: true}, isOwn: true,
		},
		"the adapter's certificates do not replace a token": {
			url: https, pulsar: `{"authSecret":"token","tlsSecret":"bundle"}`,
			own: OwnCredentials{TrustsMore: true}, invalid: "--pulsar-ca-file",
		},
		"a missing Secret": {
			pulsar: `{"authSecret":"missing"}`, own: all,
			invalid: "Secret missing, which spec.pulsar.authSecret names, does not exist: create it",
		},
		"an invalid name of a Secret": {
			pulsar: `{"authSecret":"../media/token"}`, own: all, fails: errors.New("asked"),
			invalid: `spec.pulsar.authSecret is "../media/token", which cannot be the name of a Secret`,
		},
		"a forbidden Secret": {
			pulsar: `{"authSecret":"token"}`, fails: forbidden,
			invalid: "grant the adapter get on secrets",
		},
		"a forbidden Secret, with the adapter's credentials": {
			pulsar: `{"authSecret":"token"}`, fails: forbidden, own: all,
			isOwn: true,
		},
		"ignored credentials": {
			mode:   IgnoreFunctionCredentials,
			pulsar: `{"authSecret":"token"}`, fails: errors.New("read"), isOwn: true,
		},
		"ignored credentials of a policy are reported": {
			mode:   IgnoreFunctionCredentials,
			policy: &v1alpha1.PulsarConnection{AuthSecret: "token"}, invalid: "remove authSecret",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api := testSecrets()
			api.fails = test.fails
			c := newCredentials(Config{
				Objects: api, FunctionCredentials: test.mode, OwnCredentials: test.own, Now: time.Now,
			})
			var p PulsarSpec
			require.NoError(t, json.Unmarshal([]byte(cmp.Or(test.pulsar, "{}")), &p))
			plan := planCredentials(cmp.Or(test.url, http), fixture.Namespace, test.policy, p)
			access, err := c.resolve(t.Context(), test.policy, plan)
			require.NotContains(t, fmt.Sprint(access, err), "hunter")
			if test.invalid != "" {
				require.True(t, IsInvalid(err))
				require.ErrorContains(t, err, test.invalid)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.isOwn, access == "")
			if test.isOwn {
				return
			}
			got, err := c.Credentials(t.Context(), access)
			require.NoError(t, err)
			require.Equal(t, test.want.Params, got.Params)
			require.Equal(t, test.want, got)
		})
	}
}

func TestEqualCredentialsHaveOneName(t *testing.T) {
	c := newCredentials(Config{Objects: testSecrets(), Now: time.Now})
	name := func(namespace string, p PulsarSpec) string {
		return c.name(planCredentials("http://a:1", namespace, nil, p))
	}
	token := name("media", PulsarSpec{AuthSecret: "token"})
	require.Contains(t, token, "media/token#", "the name shows the Secret")
	require.Equal(t, token, name("media", PulsarSpec{AuthSecret: "token", PulsarConfig: "x"}))
	require.NotEqual(t, token, name("media", PulsarSpec{AuthSecret: "other"}))
	require.NotEqual(t, token, name("shop", PulsarSpec{AuthSecret: "token"}))
	inline := name(
		"media",
		PulsarSpec{
			AuthConfig: &AuthConfig{GenericAuth: &GenericAuth{Plugin: "basic", Parameters: "a:b"}},
		},
	)
	require.NotContains(t, inline, "a:b")
	other := newCredentials(Config{Objects: testSecrets(), Now: time.Now})
	require.NotEqual(t, token,
		other.name(planCredentials("http://a:1", "media", nil,
			PulsarSpec{AuthSecret: "token"})), "the name does not reveal inline credentials")
	require.NotEqual(t, inline,
		name(
			"media",
			PulsarSpec{
				AuthConfig: &AuthConfig{GenericAuth: &GenericAuth{Plugin: "basic", Parameters: "a:c"}},
			},
		))
}

func TestRotatedSecretIsReadAgain(t *testing.T) {
	api, now := testSecrets(), time.Unix(0, 0)
	c := newCredentials(Config{Objects: api, Now: func() time.Time { return now }})
	access, err := c.resolve(t.Context(), nil, credentialPlan{Namespace: fixture.Namespace, AuthSecret: "token"})
	require.NoError(t, err)
	params := func() string {
		got, err := c.Credentials(t.Context(), access)
		require.NoError(t, err)
		return got.Params
	}
	api.named["token"]["clientAuthenticationParameters"] = "token:new"
	require.Equal(t, "token:hunter2", params())
	require.Equal(t, 1, api.reads)
	now = now.Add(time.Minute)
	require.Equal(t, "token:new", params())

	api.named["token"]["clientAuthenticationParameters"] = "token:newer"
	now = now.Add(10 * time.Second)
	require.Equal(t, "token:new", params())
	c.Invalidate("another")
	c.Invalidate(access)
	require.Equal(t, "token:newer", params())
	reads := api.reads
	c.Invalidate(access)
	require.Equal(t, "token:newer", params())
	require.Equal(t, reads, api.reads, "at most every ten seconds while Pulsar refuses it")

	delete(api.named, "token")
	now = now.Add(time.Minute)
	_, err = c.Credentials(t.Context(), access)
	require.ErrorIs(t, err, backlog.ErrUnauthenticated)
	require.ErrorContains(t, err, "does not exist: create it")
	api.fails = apierrors.NewServiceUnavailable("etcd is away")
	now = now.Add(10 * time.Second)
	_, err = c.Credentials(t.Context(), access)
	require.ErrorContains(t, err, "etcd is away")
	require.ErrorIs(t, err, backlog.ErrNoData, "Pulsar refused nothing")
	_, err = c.Credentials(t.Context(), "nobody/asked#1")
	require.ErrorIs(t, err, backlog.ErrNoData)
}

func TestHugeSecretIsNotCached(t *testing.T) {
	api := testSecrets()
	api.named["token"]["clientAuthenticationParameters"] = string(make([]byte, maxSecretValue+1))
	c := newCredentials(Config{Objects: api, Now: time.Now})
	_, err := c.resolve(t.Context(), nil, credentialPlan{Namespace: fixture.Namespace, AuthSecret: "token"})
	require.True(t, IsInvalid(err))
	require.ErrorContains(t, err, "is longer than 65536 bytes")
}

func TestInvalidFunctionCredentialsAreRefused(t *testing.T) {
	_, err := New(Config{
		Workloads: newTestClient(t), Installed: func(string) bool { return true }, Objects: newTestClient(t),
		FunctionCredentials: "use", Now: time.Now,
	})
	require.EqualError(t, err, `targets: FunctionCredentials is "use", must be Use or Ignore`)
}

func TestUnusedSecretsExpire(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newCredentials(Config{Objects: testSecrets(), Now: func() time.Time { return now }})
	access, err := c.resolve(t.Context(), nil, credentialPlan{Namespace: fixture.Namespace, AuthSecret: "token"})
	require.NoError(t, err)
	plan, _ := c.plans.Last(access)
	cached := func() []bool {
		_, known := c.plans.Last(access)
		_, read := c.secrets.Last(secretReads(plan)[0])
		return []bool{known, read}
	}
	now = now.Add(10*time.Minute - time.Second)
	_, err = c.Credentials(t.Context(), access)
	require.NoError(t, err)
	now = now.Add(time.Second)
	c.forget(now)
	require.Equal(t, []bool{true, true}, cached(), "the poller still uses the credentials")
	now = now.Add(10 * time.Minute)
	c.forget(now)
	require.Equal(t, []bool{false, false}, cached())
}

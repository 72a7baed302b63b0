// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

func TestNewNamesWhatIsWrong(t *testing.T) {
	empty, bad := writeFile(t, "empty.pem", ""), writeFile(t, "bad", "s3cret")
	tests := map[string]struct {
		change func(*Config)
		text   string
	}{
		"no registerer": {
			func(c *Config) { c.Registerer = nil },
			"registerer is missing: metrics need one",
		},
		"too short a timeout": {
			func(c *Config) { c.RequestTimeout = time.Millisecond },
			"requestTimeout is 1ms: it must be from 10ms to 1m",
		},
		"negative connections": {
			func(c *Config) { c.MaxConnsPerHost = -1 },
			"maxConnsPerHost is -1: it must be from 1 to 1024",
		},
		"too many requests": {
			func(c *Config) { c.MaxRequestsPerSecondPerHost = 100_001 },
			"maxRequestsPerSecondPerHost is 100001: it must be from 1 to 100000",
		},
		"a token and a plugin": {
			func(c *Config) { c.Own.TokenFile, c.Own.Plugin = "/t", "basic" },
			`authPlugin "basic" is set together with tokenFile: only one may be`,
		},
		"parameters without a plugin": {
			func(c *Config) { c.Own.ParamsFile = "/p" },
			"authParamsFile is set without authPlugin: it must be one of token, tls, basic, oauth2",
		},
		"bad parameters": {
			func(c *Config) { c.Own.Plugin, c.Own.ParamsFile = "basic", bad },
			"authParamsFile " + bad + `: parameters of the basic plugin: they must be {"userId": "...", "password": "..."} or user:password, with no ":" in the user`,
		},
		"a parameter file that is absent": {
			func(c *Config) { c.Own.Plugin, c.Own.ParamsFile = "basic", "/nope" },
			"authParamsFile /nope: no such file or directory",
		},
		"a parameter file without any": {
			func(c *Config) { c.Own.Plugin, c.Own.ParamsFile = "token", empty },
			"authParamsFile " + empty + ": parameters of the token plugin: token: it is empty",
		},
		"an issuer that is no URL": {
			func(c *Config) { c.AllowedIssuers = []string{"https://good", "me:s3cret@bad"} },
			"allowedIssuers[1] must be a URL such as https://issuer/path, with no credentials and no query",
		},
		"a CA file without any": {
			func(c *Config) { c.Own.CAFile = empty },
			`caFile "` + empty + `": it has no certificate: it must be PEM with at least one`,
		},
		"a CA file that is absent": {
			func(c *Config) { c.Own.CAFile = "/nope" },
			`caFile "/nope": no such file or directory`,
		},
		"every host": {
			func(c *Config) { c.AllowedHosts = []string{"a", "*"} },
			`allowedHosts[1] is "*": it must be host, host:port or a URL such as https://host:port, where host may start with "*." and has no other *`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := Config{Registerer: prometheus.NewRegistry()}
			tt.change(&config)
			source, err := New(config)
			require.EqualError(t, err, tt.text)
			require.Nil(t, source)
		})
	}
}

func TestAllowedHosts(t *testing.T) {
	tests := map[string]struct {
		pattern string
		allows  []string
		refuses []string
	}{
		"a host allows each of its ports": {
			"broker", []string{"http://broker", "https://broker:8443", "http://BROKER.:8080"}, []string{
				"http://broker.evil",
				"http://abroker", "http://b",
			},
		},
		"a host and a port allow only that port": {
			"broker:8080", []string{"http://broker:8080"}, []string{"http://broker", "http://broker:80801"},
		},
		"ports that the scheme implies count": {
			"broker:443", []string{"https://broker"}, []string{"http://broker"},
		},
		"a star matches one or more labels": {
			"*.pulsar.svc:8080",
			[]string{"http://b-0.pulsar.svc:8080", "http://b-0.brokers.pulsar.svc:8080"},
			[]string{
				"http://pulsar.svc:8080", "http://.pulsar.svc:8080", "http://evilpulsar.svc:8080", "http://b-0.pulsar.svc:8081",
				"http://b.pulsar.svc.evil:8080", "http://" + strings.Repeat("b.", 126) + ".pulsar.svc:8080",
			},
		},
		"an IPv6 address": {
			"[::1]:8080",
			[]string{"http://[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080"},
			[]string{"http://[::2]:8080", "http://[::1]:80", "http://[::1%25lo]:8080"},
		},
		"an IPv4 address": {
			"127.0.0.1:8080",
			[]string{"http://127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080"},
			[]string{
				"http://127.1:8080", "http://0x7f000001:8080", "http://2130706433:8080", "http://[::1]:8080",
				"http://127.0.0.1.:8080",
			},
		},
		"a star matches only names": {
			"*.pulsar.svc",
			[]string{"http://b-0.pulsar.svc"},
			[]string{
				"http://[::1%25.pulsar.svc]:8080", "http://[::1%252525.pulsar.svc]:8080", "http://[fe80::1%25a.pulsar.svc]",
				"http://[::1]",
				"http://evil..pulsar.svc", "http://a;b.pulsar.svc", "http://a,b.pulsar.svc", "http://ｅvil.pulsar.svc",
				"http://evil%E3%80%82x.pulsar.svc",
			},
		},
		"a URL allows only its scheme and port": {
			"https://broker:8443",
			[]string{"https://broker:8443", "https://Broker.:8443"},
			[]string{"http://broker:8443", "https://broker", "https://broker:443", "http://broker"},
		},
		"a URL allows the port that its scheme implies": {
			"http://broker", []string{"http://broker", "http://broker:80"}, []string{
				"http://broker:8080", "https://broker",
				"https://broker:80",
			},
		},
		"a URL may have a star": {
			"https://*.pulsar.svc:8443", []string{"https://b-0.pulsar.svc:8443"}, []string{
				"http://b-0.pulsar.svc:8443",
				"https://pulsar.svc:8443",
			},
		},
		"a URL of the binary protocol allows the port that its scheme implies": {
			"pulsar+ssl://*.pulsar.svc", []string{"pulsar+ssl://b-0.pulsar.svc:6651"}, []string{
				"pulsar+ssl://b-0.pulsar.svc:6652", "pulsar://b-0.pulsar.svc:6651", "https://b-0.pulsar.svc:6651",
			},
		},
		"one without TLS too": {
			"pulsar://broker", []string{"pulsar://broker:6650"}, []string{"pulsar+ssl://broker:6650", "http://broker:6650"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			hosts, err := parseAllowedHosts([]string{tt.pattern})
			require.NoError(t, err)
			for _, raw := range tt.allows {
				u, err := url.Parse(raw)
				require.NoError(t, err)
				require.True(t, hosts.allow(u), raw)
			}
			for _, raw := range tt.refuses {
				u, err := url.Parse(raw)
				require.NoError(t, err)
				require.False(t, hosts.allow(u), raw)
			}
		})
	}
	for _, wrong := range []string{
		"", "*", "*.", "a*b", "*.*.svc", "a/b", "a:b", "a:", "u@a", "*.127.0.0.1", "a b",
		"http://", "http://*", "http://a/", "http://a/b", "http://u:s3cret@a", "http://a?", "http://a:0", "ws://a:6650",
		"//a", "a:0", "a:65536", "a,b", "127.1",
		"*.1", "*.[::1]", "[::1%25lo]", "[::1%lo]", "bröker", "a..b",
	} {
		t.Run("refuses the pattern "+wrong, func(t *testing.T) {
			_, err := parseAllowedHosts([]string{wrong})
			require.ErrorContains(t, err, "allowedHosts[0] is ")
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestARotatedTokenIsUsedAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", answers(`{"msgInCounter":5,"subscriptions":{}}`))
	source := newSource(t, Config{Own: auth.Own{TokenFile: file}}, broker)
	for _, token := range []string{"first", "secnd"} { // equal in length, and written within one tick of the clock
		require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
		_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
		require.Equal(t, "Bearer "+token, broker.request(len(broker.requested())-1).Header.Get("Authorization"))
	}
}

func TestAnInvalidTokenFileSendsNothing(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	tests := map[string]struct{ file, text string }{
		"absent":             {filepath.Join(dir, "absent"), "no such file or directory"},
		"empty":              {write("empty", "\n"), "it is empty"},
		"two lines":          {write("two", "one\ntwo"), "it has a space, a line break or a character outside ASCII inside"},
		"longer than sense":  {write("long", strings.Repeat("x", 64<<10+1)), "it is longer than 65536 bytes"},
		"a folder, not file": {dir, "is a directory"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			_, err := newSource(t, Config{Own: auth.Own{TokenFile: tt.file}}, broker).Fetch(t.Context(), broker.topic("orders"),
				backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, backlog.ErrUnauthenticated)
			require.EqualError(t, err,
				"credentials refused: nothing was sent to "+broker.host()+": token file "+tt.file+": "+tt.text)
			require.Empty(t, broker.requested())
		})
	}
}

func TestAChangedFileOfParametersIsUsedAtOnce(t *testing.T) {
	broker := newOrders(t)
	file := writeFile(t, "params", "me:first\n")
	source := newSource(t, Config{Own: auth.Own{Plugin: "basic", ParamsFile: file}}, broker)
	shows := func(password string) {
		_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
		user, shown, ok := broker.request(len(broker.requested()) - 1).BasicAuth()
		require.True(t, ok)
		require.Equal(t, "me:"+password, user+":"+shown)
	}
	shows("first")
	require.NoError(t, os.WriteFile(file, []byte("me:secnd\n"), 0o600))
	shows("secnd")
	require.NoError(t, os.WriteFile(file, []byte("s3cret"), 0o600))
	_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrUnauthenticated)
	require.ErrorContains(t, err,
		"nothing was sent to "+broker.host()+": authParamsFile "+file+": parameters of the basic plugin")
	require.NotContains(t, err.Error(), "s3cret")
}

func TestAChangedCAFileIsUsedAndABrokenOneIsNot(t *testing.T) {
	broker := newOrders(t)
	secure := httptest.NewTLSServer(broker)
	t.Cleanup(secure.Close)
	file := writeFile(t, "ca.pem", newAuthority(t, "another authority").PEM())
	var failures []string
	source := newSource(t, Config{
		Own:          auth.Own{CAFile: file},
		CAFileFailed: func(err error) { failures = append(failures, err.Error()) },
		AllowedHosts: []string{"127.0.0.1"},
	})
	fetch := func() error {
		topic := backlog.Topic{Cluster: backlog.Cluster{AdminURL: secure.URL}, Name: "persistent://public/default/orders"}
		_, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
		return err
	}
	require.ErrorContains(t, fetch(), "signed by an unknown authority")
	require.NoError(t, os.WriteFile(file, pemOf(secure.Certificate()), 0o600))
	require.NoError(t, fetch())
	require.NoError(t, os.WriteFile(file, []byte("half of it"), 0o600))
	for range 2 {
		require.NoError(t, fetch(), "the last good ones count while the file is being replaced")
	}
	require.NoError(t, os.Remove(file))
	for range 2 {
		require.NoError(t, fetch())
	}
	const noCertificate = "it has no certificate: it must be PEM with at least one"
	require.Equal(t, []string{noCertificate, "no such file or directory"}, failures)
	require.NoError(t, os.WriteFile(file, pemOf(secure.Certificate()), 0o600))
	require.NoError(t, fetch())
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, fetch())
	require.Equal(t, []string{noCertificate, "no such file or directory", noCertificate}, failures)
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	transport := newTransport(nil, Config{})
	require.Nil(t, transport.Proxy)
	require.Less(t, transport.IdleConnTimeout, 30*time.Second)
	require.NotEqual(t, http.DefaultTransport, transport)
}

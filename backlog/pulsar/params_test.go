// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParamsOfEachPluginInEachForm(t *testing.T) {
	const auth = "org.apache.pulsar.client.impl.auth."
	token := params{method: methodToken, token: reference{content: "eyJ"}}
	basic := params{method: methodBasic, user: "me", password: "pass:word"}
	files := params{method: methodTLS, certificate: reference{path: "/tls/tls.crt"}, key: reference{path: "/tls/tls.key"}}
	inline := params{method: methodTLS, certificate: reference{content: "cert, and more"}, key: reference{content: "key"}}
	client := params{
		method: methodOAuth2, issuer: "https://issuer/realm", audience: "pulsar", scope: "a b",
		client: reference{path: "/key.json"},
	}
	tests := map[string]struct {
		plugin, text string
		want         params
	}{
		"none":                    {"", "", params{}},
		"none by its class":       {auth + "AuthenticationDisabled", "", params{}},
		"a token with its prefix": {"token", "token:eyJ", token},
		"a token alone":           {auth + "AuthenticationToken", " eyJ\n", token},
		"a token in JSON":         {"token", `{"token":"eyJ"}`, token},
		"a token file": {
			"token", "file:///run/token",
			params{method: methodToken, token: reference{path: "/run/token"}},
		},
		"a token file, with one slash": {
			"token", "file:/run/token",
			params{method: methodToken, token: reference{path: "/run/token"}},
		},
		"a user with a password": {"basic", "me:pass:word", basic},
		"a user in JSON":         {auth + "AuthenticationBasic", `{"userId":"me","password":"pass:word"}`, basic},
		"certificate files":      {"tls", "tlsCertFile:/tls/tls.crt,tlsKeyFile:/tls/tls.key", files},
		"certificate files, turned": {
			auth + "AuthenticationTls", "tlsKeyFile:/tls/tls.key, tlsCertFile:/tls/tls.crt",
			files,
		},
		"a file that is named twice": {"tls", "tlsCertFile:/x,tlsCertFile:/tls/tls.crt,tlsKeyFile:/tls/tls.key", files},
		"certificate files in JSON":  {"tls", `{"tlsCertFile":"file:///tls/tls.crt","tlsKeyFile":"/tls/tls.key"}`, files},
		"certificates inside": {
			"tls", "tlsCertFile:data:,cert, and more,tlsKeyFile:data:application/x;base64,a2V5",
			inline,
		},
		"certificates inside JSON": {
			"tls", `{"tlsCertFile":"data:,cert%2C and more","tlsKeyFile":"data:;base64,a2V5"}`,
			inline,
		},
		"a client": {
			auth + "oauth2.AuthenticationOAuth2",
			`{"type":"client_credentials","issuerUrl":"https://Issuer/realm/","privateKey":"file:///key.json","audience":"pulsar","scope":"a b",` +
				`"clientId":"me","connectTimeout":"PT10S","readTimeout":30}`,
			client,
		},
		"a client with its own authorities": {
			"oauth2", `{"issuerUrl":"http://issuer:8080","privateKey":"data:,{}","trustCertsFilePath":"/ca.crt"}`,
			params{
				method: methodOAuth2, issuer: "http://issuer:8080", client: reference{content: "{}"},
				issuerRoots: reference{path: "/ca.crt"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decodeParams(tt.plugin, tt.text)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestParamsThatAreNoGoodAreNotShown(t *testing.T) {
	const tlsForm = "parameters of the tls plugin: they must be tlsCertFile:...,tlsKeyFile:... or the same as JSON"
	const basicForm = `parameters of the basic plugin: they must be {"userId": "...", "password": "..."} or user:password, with no ":" in the user`
	tests := map[string]struct{ plugin, text, want string }{
		"another plugin": {
			"org.apache.pulsar.client.impl.auth.AuthenticationSasl", "s3cret",
			`not supported: authentication plugin "org.apache.pulsar.client.impl.auth.AuthenticationSasl": it ` + pluginsWanted,
		},
		"a token in the place of the plugin": {
			"s3cret.s3cret.s3cret", "token",
			"not supported: authentication plugin: it " + pluginsWanted,
		},
		"a token behind what may be a plugin": {
			"org.apache.pulsar:s3cret", "token",
			"not supported: authentication plugin: it " + pluginsWanted,
		},
		"no token":         {"token", "", "parameters of the token plugin: token: it is empty"},
		"no token in JSON": {"token", "{}", "parameters of the token plugin: token: it is empty"},
		"two tokens": {
			"token", "s3cret s3cret",
			"parameters of the token plugin: token: it has a space, a line break or a character outside ASCII inside",
		},
		"a token file elsewhere": {
			"token", "file://s3cret/token",
			"parameters of the token plugin: token is a file: URL without an absolute path: it must look like file:///path",
		},
		"JSON that is cut off": {
			"token", `{"token":"s3cret`,
			"parameters of the token plugin: they are not a JSON object",
		},
		"JSON with something to follow": {
			"token", `{"token":"s3cret"} s3cret`,
			"parameters of the token plugin: there is something after the JSON object",
		},
		"JSON with an unknown key": {
			"token", `{"tokn":"s3cret"}`,
			`parameters of the token plugin: unknown key "tokn"`,
		},
		"JSON with a number": {
			"token", `{"token":5}`,
			"parameters of the token plugin: token must be a text",
		},
		"no password":         {"basic", "s3cret", basicForm},
		"no password in JSON": {"basic", `{"userId":"me"}`, basicForm},
		"a user with a colon": {"basic", `{"userId":"me:s3cret","password":"s3cret"}`, basicForm},
		"no certificate":      {"tls", "s3cret", tlsForm},
		"an unknown key":      {"tls", "tlsCertFile:/a,s3cret:/b", tlsForm},
		"no key": {
			"tls", "tlsCertFile:/a",
			"parameters of the tls plugin: tlsKeyFile must be data:;base64,<content>, file:///<path> or an absolute path",
		},
		"a relative path": {
			"tls", "tlsCertFile:s3cret,tlsKeyFile:/b",
			"parameters of the tls plugin: tlsCertFile must be data:;base64,<content>, file:///<path> or an absolute path",
		},
		"data without a comma": {
			"tls", `{"tlsCertFile":"data:s3cret"}`,
			"parameters of the tls plugin: tlsCertFile is a data: URL without a comma: it must look like data:;base64,<content>",
		},
		"data that is not base64": {
			"tls", `{"tlsCertFile":"data:;base64,s3cret!"}`,
			"parameters of the tls plugin: tlsCertFile is a data: URL that is not base64",
		},
		"data with a bad escape": {
			"tls", `{"tlsCertFile":"data:,s3cret%"}`,
			"parameters of the tls plugin: tlsCertFile is a data: URL with a bad %-escape",
		},
		"a client without JSON": {
			"oauth2", "s3cret",
			"parameters of the oauth2 plugin: they are not a JSON object",
		},
		"another flow": {
			"oauth2", `{"type":"password"}`,
			`parameters of the oauth2 plugin: type is "password": it must be client_credentials`,
		},
		"an issuer with a password": {
			"oauth2", `{"issuerUrl":"https://me:s3cret@issuer"}`,
			"parameters of the oauth2 plugin: issuerUrl must be a URL such as https://issuer/path, with no credentials and no " +
				"query",
		},
		"no key of a client": {
			"oauth2", `{"issuerUrl":"https://issuer"}`,
			"parameters of the oauth2 plugin: privateKey must be data:;base64,<content>, file:///<path> or an absolute path",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decodeParams(tt.plugin, tt.text)
			require.EqualError(t, err, tt.want)
			require.NotContains(t, err.Error(), "s3cret")
			require.Zero(t, got)
		})
	}
}

func TestParamsAreBounded(t *testing.T) {
	for _, plugin := range []string{"token", "basic", "tls", "oauth2"} {
		_, err := decodeParams(plugin, "tlsCertFile:"+strings.Repeat(",", maxFileBytes))
		require.EqualError(t, err, "parameters of the "+plugin+" plugin: they are longer than 1048576 bytes")
	}
	commas := strings.Repeat(",", maxFileBytes-100) // each of which might be the end of a value
	got, err := decodeParams("tls", "tlsCertFile:data:"+commas+",tlsKeyFile:data:,b")
	require.NoError(t, err)
	require.Equal(t, commas[1:], got.certificate.content)
	require.Equal(t, "b", got.key.content)
}

func TestKeyFilesOfClients(t *testing.T) {
	good, err := decodeKeyFile(`{"type":"sn_service_account","client_id":"me","client_secret":"s3cret","client_email":"a@b","issuer_url":"https://x"}`)
	require.NoError(t, err)
	require.Equal(t, keyFile{Type: "sn_service_account", ClientID: "me", ClientSecret: "s3cret"}, good)
	for _, wrong := range []string{
		"", "s3cret", "{}", `{"client_id":"me"}`, `{"client_id":5,"client_secret":"s3cret"}`,
		`{"type":"s3cret","client_id":"me","client_secret":"s3cret"}`,
	} {
		_, err := decodeKeyFile(wrong)
		require.ErrorContains(t, err, "privateKey ")
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func FuzzParams(f *testing.F) {
	for _, text := range []string{
		"token:eyJ", "file:///a", `{"token":"a"}`, "a:b", `{"userId":"a","password":"b"}`,
		"tlsCertFile:/a,tlsKeyFile:data:,b,c",
		`{"issuerUrl":"https://a/","privateKey":"data:;base64,e30="}`, "data:", "tlsCertFile:data:,tlsKeyFile:",
	} {
		for _, plugin := range []string{"token", "basic", "tls", "oauth2"} {
			f.Add(plugin, text)
		}
	}
	f.Fuzz(func(t *testing.T, plugin, text string) {
		p, err := decodeParams(plugin, text)
		if err != nil {
			require.Zero(t, p)
			return
		}
		switch p.method {
		case methodNone:
			require.Zero(t, p)
		case methodToken:
			require.NotEqual(t, p.token.content == "", p.token.path == "", "it is one of them")
			if p.token.content != "" {
				clean, err := cleanToken(p.token.content)
				require.NoError(t, err)
				require.Equal(t, clean, p.token.content)
			}
		case methodBasic:
			require.NotEmpty(t, p.user)
			require.NotContains(t, p.user, ":")
		case methodOAuth2:
			again, err := ParseIssuer(p.issuer)
			require.NoError(t, err)
			require.Equal(t, p.issuer, again, "an issuer has one spelling")
		case methodTLS:
		}
		for _, n := range p.references() {
			if n.path != "" {
				require.True(t, strings.HasPrefix(n.path, "/"))
				require.Empty(t, n.content)
			}
		}
	})
}

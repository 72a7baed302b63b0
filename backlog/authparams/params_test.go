// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package authparams

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParamsOfEachPluginInEachForm(t *testing.T) {
	const auth = "org.apache.pulsar.client.impl.auth."
	token := Params{Method: Token, Token: Value{Content: "eyJ"}}
	basic := Params{Method: Basic, User: "me", Password: "pass:word"}
	files := Params{Method: TLS, Certificate: Value{Path: "/tls/tls.crt"}, Key: Value{Path: "/tls/tls.key"}}
	inline := Params{Method: TLS, Certificate: Value{Content: "cert, and more"}, Key: Value{Content: "key"}}
	client := Params{
		Method: OAuth2, Issuer: "https://issuer/realm", Audience: "pulsar", Scope: "a b",
		Client: Value{Path: "/key.json"},
	}
	tests := map[string]struct {
		plugin, text string
		want         Params
	}{
		"none":                    {"", "", Params{}},
		"none by its class":       {auth + "AuthenticationDisabled", "", Params{}},
		"a token with its prefix": {"token", "token:eyJ", token},
		"a plain token":           {auth + "AuthenticationToken", " eyJ\n", token},
		"a token in JSON":         {"token", `{"token":"eyJ"}`, token},
		"a token file": {
			"token", "file:///run/token",
			Params{Method: Token, Token: Value{Path: "/run/token"}},
		},
		"a token file, with one slash": {
			"token", "file:/run/token",
			Params{Method: Token, Token: Value{Path: "/run/token"}},
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
			Params{
				Method: OAuth2, Issuer: "http://issuer:8080", Client: Value{Content: "{}"},
				IssuerRoots: Value{Path: "/ca.crt"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tt.plugin, tt.text)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestInvalidParamsAreNotShown(t *testing.T) {
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
		"a token after an apparent plugin": {
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
		"incomplete JSON": {
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
			got, err := Parse(tt.plugin, tt.text)
			require.EqualError(t, err, tt.want)
			require.NotContains(t, err.Error(), "s3cret")
			require.Zero(t, got)
		})
	}
}

func TestParamsAreBounded(t *testing.T) {
	for _, plugin := range []string{"token", "basic", "tls", "oauth2"} {
		_, err := Parse(plugin, "tlsCertFile:"+strings.Repeat(",", MaxBytes))
		require.EqualError(t, err, "parameters of the "+plugin+" plugin: they are longer than 1048576 bytes")
	}
	commas := strings.Repeat(",", MaxBytes-100) // each of which might be the end of a value
	got, err := Parse("tls", "tlsCertFile:data:"+commas+",tlsKeyFile:data:,b")
	require.NoError(t, err)
	require.Equal(t, commas[1:], got.Certificate.Content)
	require.Equal(t, "b", got.Key.Content)
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
		p, err := Parse(plugin, text)
		if err != nil {
			require.Zero(t, p)
			return
		}
		switch p.Method {
		case None:
			require.Zero(t, p)
		case Token:
			require.NotEqual(t, p.Token.Content == "", p.Token.Path == "", "it is one of them")
			if p.Token.Content != "" {
				clean, err := ParseToken(p.Token.Content)
				require.NoError(t, err)
				require.Equal(t, clean, p.Token.Content)
			}
		case Basic:
			require.NotEmpty(t, p.User)
			require.NotContains(t, p.User, ":")
		case OAuth2:
			again, err := ParseIssuer(p.Issuer)
			require.NoError(t, err)
			require.Equal(t, p.Issuer, again, "an issuer has one spelling")
		case TLS:
		}
		for _, n := range p.Values() {
			if n.Path != "" {
				require.True(t, strings.HasPrefix(n.Path, "/"))
				require.Empty(t, n.Content)
			}
		}
	})
}

func TestFilesThatParametersName(t *testing.T) {
	const athenz = "org.apache.pulsar.client.impl.auth.AuthenticationAthenz"
	tests := map[string]struct{ plugin, text, want string }{
		"a token file":                      {"token", "file:///run/token", "/run/token"},
		"a certificate file":                {"tls", "tlsCertFile:/tls.crt,tlsKeyFile:/tls.key", "/tls.crt"},
		"a key file":                        {"oauth2", `{"issuerUrl":"https://a","privateKey":"/key.json"}`, "/key.json"},
		"a key file of an unknown plugin":   {athenz, `{"tenantDomain":"a","privateKey":"file:///key"}`, "file:///key"},
		"a file without a plugin":           {"", "file:///run/token", "file:///run/token"},
		"content":                           {"token", "token:/run/token", ""},
		"numbers":                           {athenz, `{"privateKey":7}`, ""},
		"parameters that cannot be decoded": {"oauth2", "{", ""},
		"nothing":                           {"", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, FindFile(tt.plugin, tt.text))
		})
	}
}

// No Secret causes a panic, and a token is never taken for a path.
func FuzzFindFile(f *testing.F) {
	for _, text := range []string{
		"token:a", "file:///a", `{"privateKey":"file:///k"}`, "tlsCertFile:/a,tlsKeyFile:/b", "{", `{"tlsKeyFile":7}`,
	} {
		for _, plugin := range []string{"", "token", "tls", "oauth2", "other"} {
			f.Add(plugin, text)
		}
	}
	f.Fuzz(func(t *testing.T, plugin, text string) {
		path := FindFile(plugin, text)
		require.True(t, path == "" || strings.HasPrefix(path, "/") || strings.HasPrefix(path, "file:"))
		require.Empty(t, FindFile(plugin, "token:"+text), "a token is no path")
	})
}

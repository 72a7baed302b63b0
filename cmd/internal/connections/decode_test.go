// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const twoConnections = `
connections:
- name: east
  adminURL: HTTP://Pulsar.East:8080/
  workerURL: http://worker.east:6750
  tokenFile: /etc/east/token
- name: west-2
  adminURL: https://pulsar.west
  authPlugin: tls
  authParamsFile: /etc/west/params
  caFile: /etc/west/ca.crt
  allowInsecureConnection: true
  tlsHostnameVerification: false
  namespaces: [media, orders]
`

func TestConnectionsAreDecoded(t *testing.T) {
	have, err := decode([]byte(twoConnections))
	require.NoError(t, err)
	require.Equal(t, map[string]connection{
		"east": {
			Name: "east", AdminURL: "http://pulsar.east:8080", WorkerURL: "http://worker.east:6750",
			TokenFile: "/etc/east/token",
		},
		"west-2": {
			Name: "west-2", AdminURL: "https://pulsar.west", AuthPlugin: "tls", AuthParamsFile: "/etc/west/params",
			CAFile:                  "/etc/west/ca.crt",
			AllowInsecureConnection: true, TLSHostnameVerification: new(false), Namespaces: []string{"media", "orders"},
		},
	}, have)
	have, err = decode(nil)
	require.NoError(t, err)
	require.Empty(t, have, "an empty file has none")
}

func TestAllProblemsOfConnectionsAreReportedAtOnce(t *testing.T) {
	entry := func(lines ...string) string { return "connections:\n- " + strings.Join(lines, "\n  ") }
	const east = "name: east\n  adminURL: http://east:8080"
	tests := map[string]struct {
		text string
		want []string
	}{
		"no YAML":           {"connections: [", []string{"it must be YAML with a list named connections"}},
		"a list at the top": {"- name: east", []string{"it must be YAML with a list named connections"}},
		"an unknown key":    {entry(east, "token: s3cret"), []string{`unknown field "token"`}},
		"a key twice":       {entry(east, "name: west"), []string{`key "name" already set in map`}},
		"nothing in it": {
			entry("name: ''"),
			[]string{
				`connections[0].name is "", must be lower-case letters, digits and dashes, at most 63`,
				"connections[0].adminURL must be http://host:port",
			},
		},
		"the same name": {
			"connections:\n- " + east + "\n- " + east,
			[]string{`connections[1].name is "east" for the second time, must be there once`},
		},
		"a URL with a path": {
			entry("name: east", "adminURL: http://me:s3cret@east/admin"),
			[]string{"connections[0].adminURL must be http://host:port or https://host:port"},
		},
		"a worker's alike": {
			entry(east, "workerURL: worker:6750"),
			[]string{"connections[0].workerURL must be http://host:port"},
		},
		"a relative path": {
			entry(east, "tokenFile: token"),
			[]string{`connections[0].tokenFile is "token", must be an absolute path`},
		},
		"two credentials": {
			entry(east, "tokenFile: /t", "authPlugin: token", "authParamsFile: /p"),
			[]string{"connections[0].tokenFile is set together with authPlugin or authParamsFile, must be the only one"},
		},
		"a plugin alone": {
			entry(east, "authPlugin: basic"),
			[]string{"connections[0].authParamsFile is missing, must be set with authPlugin"},
		},
		"parameters alone": {
			entry(east, "authParamsFile: /p"),
			[]string{"connections[0].authPlugin is missing, must be set with authParamsFile: token, tls, basic or oauth2"},
		},
		"an unknown plugin": {
			entry(east, "authPlugin: athenz", "authParamsFile: /p"),
			[]string{`connections[0].authPlugin is "athenz", it must be one of token, tls, basic, oauth2`},
		},
		"a strange space": {
			entry(east, "namespaces: [media, 'a*']"),
			[]string{`connections[0].namespaces[1] is "a*", must be the name of a namespace of Kubernetes; leave namespaces out for all`},
		},
		"too many of them": {
			entry(east, "namespaces: ["+strings.Repeat("a,", 1001)+"]"),
			[]string{"connections[0].namespaces has 1001 entries, must have at most 1000"},
		},
		"too many in all": {
			"connections:\n" + strings.Repeat("- {}\n", 1001),
			[]string{"connections has 1001 entries, must have at most 1000"},
		},
		"mistakes in two": {
			"connections:\n- name: A\n  adminURL: http://a\n- name: b\n  adminURL: b",
			[]string{`connections[0].name is "A"`, "connections[1].adminURL must"},
		},
		"a word for a truth": {entry(east, "allowInsecureConnection: often"), []string{"allowInsecureConnection"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			have, err := decode([]byte(test.text))
			require.Nil(t, have)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(twoConnections))
	f.Add([]byte("connections: [{name: a, adminURL: 'http://a'}, {name: a}]"))
	f.Add([]byte(`{"connections": [{"name": "a", "adminURL": "https://[::1]:8443", "namespaces": ["b"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := decode(text)
		if err != nil {
			require.Nil(t, found)
			return
		}
		accesses := map[string]bool{}
		for name, c := range found {
			require.Equal(t, name, c.Name)
			require.True(t, isLabel(name))
			for _, address := range c.urls() {
				again, err := backlog.ParseAdminURL(address)
				require.NoError(t, err)
				require.Equal(t, address, again)
			}
			require.False(t, c.TokenFile != "" && c.AuthPlugin != "")
			require.Equal(t, c.AuthPlugin == "", c.AuthParamsFile == "")
			require.True(t, (&Connections{}).knows(c.access()))
			accesses[c.access()] = true
		}
		require.Len(t, accesses, len(found), "each has credentials of its own")
	})
}

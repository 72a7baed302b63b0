// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestParseAdminURLGivesOneSpelling(t *testing.T) {
	tests := map[string]struct{ text, want, problem string }{
		"a host and a port":                {text: "http://broker:8080", want: "http://broker:8080"},
		"capitals and a slash at the end":  {text: "https://Broker.Pulsar:8443/", want: "https://broker.pulsar:8443"},
		"an IPv6 address":                  {text: "http://[::1]:8080", want: "http://[::1]:8080"},
		"no scheme":                        {text: "broker:8080", problem: "must be http://host:port"},
		"another scheme":                   {text: "pulsar://broker:6650", problem: "must be http://host:port"},
		"no host":                          {text: "http://:8080", problem: "must be http://host:port"},
		"a path":                           {text: "http://broker:8080/admin/v2", problem: "with no path"},
		"a question mark with nothing":     {text: "http://broker:8080?", problem: "must be http://host:port"},
		"a fragment with nothing":          {text: "http://broker:8080#", problem: "must be http://host:port"},
		"several hosts, as Pulsar writes":  {text: "http://a:8080,b:8080", problem: "one host"},
		"credentials, which are not shown": {text: "http://me:secret@broker:8080", problem: "no credentials"},
		"what is no URL, not shown":        {text: "http://secret@bro ker", problem: "cannot be read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := backlog.ParseAdminURL(tt.text)
			if tt.problem != "" {
				require.ErrorContains(t, err, tt.problem)
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestCredentialsNeverShowTheirSecrets(t *testing.T) {
	held := backlog.Credentials{Plugin: "token", Params: "s3cret", TrustCerts: "s3cret"}
	asJSON, err := json.Marshal(map[string]any{"credentials": held, "more": []backlog.Credentials{held}})
	require.NoError(t, err)
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("looked up", "credentials", held)
	for _, shown := range []string{
		fmt.Sprint(held), fmt.Sprintf("%+v", held), fmt.Sprintf("%#v", held), fmt.Sprintf("%+v", &held),
		string(asJSON), logged.String(),
	} {
		require.NotContains(t, shown, "s3cret")
		require.Contains(t, shown, "token")
	}
	require.Equal(t, "no credentials", backlog.Credentials{}.String())
}

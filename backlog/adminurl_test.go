// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestParseAdminURLIsCanonical(t *testing.T) {
	const want = "must be http://host:port"
	tests := map[string]struct{ text, want, problem string }{
		"a host and a port":                     {text: "http://broker:8080", want: "http://broker:8080"},
		"capitals and a slash at the end":       {text: "HTTPS://Broker.Pulsar:8443/", want: "https://broker.pulsar:8443"},
		"no port":                               {text: "http://broker", want: "http://broker"},
		"the port that http implies":            {text: "http://broker:80", want: "http://broker"},
		"the port that https implies":           {text: "https://broker:443", want: "https://broker"},
		"the port that the other implies":       {text: "https://broker:80", want: "https://broker:80"},
		"a port with a zero before it":          {text: "http://broker:08080", want: "http://broker:8080"},
		"a name that is complete":               {text: "http://broker.pulsar.:8080", want: "http://broker.pulsar.:8080"},
		"a name with underscores":               {text: "http://pulsar_broker_1:8080", want: "http://pulsar_broker_1:8080"},
		"an IPv4 address":                       {text: "http://10.0.0.1:8080", want: "http://10.0.0.1:8080"},
		"an IPv6 address":                       {text: "http://[::1]:8080", want: "http://[::1]:8080"},
		"an IPv6 address in full":               {text: "http://[2001:DB8:0:0:0:0:0:1]", want: "http://[2001:db8::1]"},
		"an IPv4 address written as IPv6":       {text: "http://[::ffff:10.0.0.1]:8080", want: "http://10.0.0.1:8080"},
		"nothing":                               {text: "", problem: want},
		"no scheme":                             {text: "broker:8080", problem: want},
		"no scheme but slashes":                 {text: "//broker:8080", problem: want},
		"one slash":                             {text: "http:/broker:8080", problem: want},
		"no slash":                              {text: "http:broker:8080", problem: want},
		"another scheme":                        {text: "pulsar://broker:6650", problem: want},
		"no host":                               {text: "http://:8080", problem: want},
		"no host and no port":                   {text: "http://", problem: want},
		"a path":                                {text: "http://broker:8080/admin/v2", problem: "with no path"},
		"two slashes at the end":                {text: "http://broker:8080//", problem: "with no path"},
		"an empty query":                        {text: "http://broker:8080?", problem: want},
		"a question mark after the slash":       {text: "http://broker:8080/?", problem: want},
		"an empty fragment":                     {text: "http://broker:8080#", problem: want},
		"a fragment that looks like a host":     {text: "http://evil#.pulsar:8080", problem: want},
		"several hosts, as Pulsar writes":       {text: "http://a:8080,b:8080", problem: "one host"},
		"several hosts, one port":               {text: "http://a,b:8080", problem: "one host"},
		"several URLs":                          {text: "http://a:8080,http://b:8080", problem: want},
		"credentials, which are not shown":      {text: "http://me:secret@broker:8080", problem: "no credentials"},
		"credentials without a name":            {text: "http://@broker:8080", problem: "no credentials"},
		"credentials that look like the host":   {text: "http://broker:8080@evil:80", problem: want},
		"an invalid URL, not shown":             {text: "http://secret@bro ker", problem: "cannot be read"},
		"a blank before it":                     {text: " http://broker:8080", problem: "cannot be read"},
		"a line break after it":                 {text: "http://broker:8080\n", problem: "cannot be read"},
		"a backslash":                           {text: `http://broker\.evil`, problem: "cannot be read"},
		"a colon without a port":                {text: "http://broker:", problem: want},
		"port 0":                                {text: "http://broker:0", problem: want},
		"a port that is too large":              {text: "http://broker:65536", problem: want},
		"a port that is a name":                 {text: "http://broker:http", problem: "cannot be read"},
		"a port with a sign":                    {text: "http://broker:+80", problem: "cannot be read"},
		"two ports":                             {text: "http://broker:80:80", problem: "cannot be read"},
		"an IPv6 address without brackets":      {text: "http://::1", problem: "must be http://host:port"},
		"an IPv6 address with a zone":           {text: "http://[fe80::1%25eth0]:8080", problem: want},
		"a zone that looks like a name":         {text: "http://[::1%25.pulsar.svc]:8080", problem: want},
		"a zone that hides in another":          {text: "http://[::1%252525.pulsar.svc]:8080", problem: want},
		"a name in brackets":                    {text: "http://[broker]:8080", problem: want},
		"a short IPv4 address":                  {text: "http://127.1:8080", problem: want},
		"an IPv4 address as one number":         {text: "http://2130706433:8080", problem: want},
		"an IPv4 address in hexadecimal":        {text: "http://0x7F000001:8080", problem: want},
		"an IPv4 address in octal":              {text: "http://0177.0.0.01:8080", problem: want},
		"an IPv4 address with a dot at its end": {text: "http://127.0.0.1.:8080", problem: want},
		"only a dot":                            {text: "http://.:8080", problem: want},
		"an empty label":                        {text: "http://broker..pulsar:8080", problem: want},
		"two dots at the end":                   {text: "http://broker..:8080", problem: want},
		"a letter that is not ASCII":            {text: "http://brökér:8080", problem: want},
		"a letter that looks like another":      {text: "http://ｂroker:8080", problem: want},
		"an encoded letter that is not ASCII":   {text: "http://br%C3%B6ker:8080", problem: want},
		"an encoded letter of ASCII":            {text: "http://br%6fker:8080", problem: "cannot be read"},
		"an underscore in a host":               {text: "http://a;b=c:8080", problem: want},
		"a star":                                {text: "http://*.pulsar:8080", problem: want},
		"a label of 64 letters":                 {text: "http://" + strings.Repeat("a", 64) + ":8080", problem: want},
		"a name of more than 253 letters":       {text: "http://" + strings.Repeat("a.", 127) + "b", problem: want},
		"a template that was not filled in":     {text: "http://{{host}}:8080", problem: "cannot be read"},
		"a variable that was not filled in":     {text: "http://$(HOST):8080", problem: want},
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

func FuzzParseAdminURL(f *testing.F) {
	for _, text := range []string{
		"http://broker:8080", "HTTPS://Broker.:443/", "http://[::1%252525.svc]:80", "http://[::FFFF:1.2.3.4]",
		"http://0x7f.1", "http://a,b",
		"http://u@b?#", "http://brökér:080",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spelled, err := backlog.ParseAdminURL(text)
		if err != nil {
			require.Empty(t, spelled)
			return
		}
		again, err := backlog.ParseAdminURL(spelled)
		require.NoError(t, err)
		require.Equal(t, spelled, again, "the compared URL must be the called one")
		u, err := url.Parse(spelled)
		require.NoError(t, err)
		require.Equal(t, spelled, u.String())
		require.Equal(t, u.Scheme+"://"+u.Host, spelled)
		host, err := backlog.ParseHost(u.Hostname())
		require.NoError(t, err)
		require.Equal(t, host, u.Hostname())
		require.Equal(t, -1,
			strings.IndexFunc(spelled,
				func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`%@?#,;\"<>*`, r) }), spelled)
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

func TestTheBinaryProtocolSendsTheSecretAlone(t *testing.T) {
	tests := map[string]struct {
		shown          authorization
		method, secret string
	}{
		"nothing":                {authorization{}, "", ""},
		"a token":                {authorization{authparams.Token, "abc"}, "token", "abc"},
		"the token of an issuer": {authorization{authparams.OAuth2, "abc"}, "token", "abc"},
		"user and password":      {authorization{authparams.Basic, "reader:open sesame"}, "basic", "reader:open sesame"},
		"a client certificate":   {authorization{method: authparams.TLS}, "tls", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.method, test.shown.methodName())
			require.Equal(t, test.secret, test.shown.secret)
		})
	}
}

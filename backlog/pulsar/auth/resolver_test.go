// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// connections are credentials that the program's administrator configured, for no URL.
type connections map[string]backlog.Credentials

func (c connections) Credentials(_ context.Context, access string) (backlog.Credentials, error) {
	return c[access], nil
}

func (c connections) Administered(access string) (urls []string, is bool) {
	_, is = c[access]
	return nil, is
}

func TestAnAdministratorsCredentialsMayCallTheirIssuer(t *testing.T) {
	config := testConfig(&observed{})
	config.Named = connections{
		"connection/east": {Plugin: "oauth2", Params: `{"issuerUrl":"https://issuer","privateKey":"data:,{}"}`},
	}
	c, err := New(config)
	require.NoError(t, err)
	found, err := c.resolve(t.Context(), "connection/east")
	require.NoError(t, err)
	require.Equal(t, "https://issuer", found.Issuer)
}

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

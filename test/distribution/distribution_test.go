// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"encoding/xml"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionComesFromTheEnvironment(t *testing.T) {
	t.Setenv(VersionVariable, "")
	require.Equal(t, "4.0.8", orDefault(""))
	t.Setenv(VersionVariable, "4.2.4")
	require.Equal(t, "4.2.4", orDefault(""))
	require.Equal(t, "5.0.0-M1", orDefault("5.0.0-M1"))
}

func TestEveryPomIsOfItsVersion(t *testing.T) {
	for _, version := range Versions()[1:] {
		text, err := files.ReadFile("maven/" + version + "/pom.xml")
		require.NoError(t, err)
		var pom struct {
			Pulsar string `xml:"properties>pulsar.version"`
		}
		require.NoError(t, xml.Unmarshal(text, &pom))
		require.Equal(t, version, pom.Pulsar)
	}
}

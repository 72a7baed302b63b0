// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnErrorOfIPNamesTheFix(t *testing.T) {
	for name, test := range map[string]struct{ out, want string }{
		"a user namespace without rights": {"RTNETLINK answers: Operation not permitted", allowNamespaces},
		"no module for bridges":           {"Error: Unknown device type.", loadModules},
		"no module for cables":            {"RTNETLINK answers: Operation not supported", loadModules},
		"something else":                  {"RTNETLINK answers: File exists", ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, remedy(test.out)) })
	}
}

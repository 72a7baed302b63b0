// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

// document is the part of JSON Schema that docs/bench.schema.json uses.
type document struct {
	Ref        string              `json:"$ref"`
	Required   []string            `json:"required"`
	Properties map[string]document `json:"properties"`
	Items      *document           `json:"items"`
	Defs       map[string]document `json:"$defs"`
}

// check fails for keys that are not in the schema, and for required keys that are missing.
func (s document) check(t *testing.T, defs map[string]document, where string, value any) {
	t.Helper()
	if s.Ref != "" {
		s = defs[path.Base(s.Ref)]
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range s.Required {
			require.Contains(t, value, key, "%s lacks what the schema requires", where)
		}
		for key, inner := range value {
			require.Contains(t, s.Properties, key, "%s is not in the schema", where)
			s.Properties[key].check(t, defs, where+"."+key, inner)
		}
	case []any:
		require.NotNil(t, s.Items, "%s is a list", where)
		for _, inner := range value {
			s.Items.check(t, defs, where+"[]", inner)
		}
	}
}

func TestResultFollowsItsSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/bench.schema.json")
	require.NoError(t, err)
	var s document
	require.NoError(t, json.Unmarshal(text, &s))
	r := sampleResult(t)
	r.Contenders[0].Messages.Bottleneck, r.Contenders[0].Stalled = "a slow machine", "no result came"
	r.Contenders[0].Samples[0].DesiredReplicas, r.Contenders[0].Samples[0].Backlog = new(2), new(int64(9))
	r.Contenders[0].Samples[0].WaitSeconds = new(1.5)
	r.Verdict.Reason = "a slow machine"
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(encoded, &value))
	s.check(t, s.Defs, "result", value)
}

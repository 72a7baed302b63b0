// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

const page = "../../docs/keda.md"

// documented is the compared part of a ScaledObject in an example.
type documented struct {
	Spec struct {
		Triggers []struct {
			Type     string
			Metadata map[string]string
		}
	}
}

func TestTheExamplesOfThePageAreValid(t *testing.T) {
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	triggers := 0
	for i, block := range strings.Split(string(content), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for _, document := range strings.Split(block, "---\n") {
			var example documented
			require.NoError(t, yaml.Unmarshal([]byte(document), &example), "block %d", i)
			for _, trigger := range example.Spec.Triggers {
				require.Equal(t, "external-push", trigger.Type)
				_, err := keda.Decode(types.NamespacedName{Namespace: "media", Name: "example"}, trigger.Metadata)
				require.NoError(t, err, document)
				triggers++
			}
		}
	}
	require.Equal(t, 6, triggers)
}

func TestThePageHasEveryKey(t *testing.T) {
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	text, err := os.ReadFile("../../docs/keda-trigger.schema.json")
	require.NoError(t, err)
	var schema struct {
		Definitions map[string]json.RawMessage `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	require.NotEmpty(t, schema.Definitions)
	for name := range schema.Definitions {
		if !strings.HasSuffix(name, "FromEnv") {
			require.Contains(t, string(content), "`"+name+"`")
		}
	}
}

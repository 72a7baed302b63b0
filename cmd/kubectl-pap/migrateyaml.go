// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
)

// writeMoves writes manifests with comments, then the steps.
func writeMoves(out io.Writer, result migrate.Result) error {
	var text strings.Builder
	for _, m := range result.Moves {
		manifest, err := moveManifest(m)
		if err != nil {
			return err
		}
		text.WriteString(manifest + "---\n")
	}
	text.WriteString(moveSteps(result))
	_, err := io.WriteString(out, text.String())
	return err
}

// moveObject is the policy or the set.
func moveObject(m migrate.Move) client.Object {
	if m.Set != nil {
		return m.Set
	}
	return m.Policy
}

// writeMovesJSON writes a list that kubectl apply takes.
func writeMovesJSON(out io.Writer, moves []migrate.Move) error {
	list := corev1.List{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{},
	}
	for _, m := range moves {
		list.Items = append(list.Items, runtime.RawExtension{Object: moveObject(m)})
	}
	return writeJSON(out, list)
}

// moveManifest is the object as YAML, with the order of the API's fields.
func moveManifest(m migrate.Move) (string, error) {
	text, err := json.Marshal(moveObject(m))
	var document yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &document) // JSON is YAML
	}
	if err != nil {
		return "", fmt.Errorf("encoding the policy of %s: %w", m.Targets[0], err)
	}
	inBlocks(&document)
	object := document.Content[0]
	if fields := object.Content; fields[0].Value == "kind" { // Go's types have it before apiVersion
		fields[0], fields[1], fields[2], fields[3] = fields[2], fields[3], fields[0], fields[1]
	}
	spec := yamlField(object, "spec")
	depth := 1
	if m.Set != nil {
		spec, depth = yamlField(yamlField(spec, "template"), "spec"), 3
	}
	// As people write it, not 1m0s.
	yamlField(spec, "latencyObjective").Value = fmt.Sprintf("%.0fs", m.Spec().LatencyObjective.Seconds())
	for i := 0; i < len(spec.Content); i += 2 {
		key := spec.Content[i]
		if comment := m.Comments[key.Value]; comment != "" {
			key.HeadComment = strings.TrimSuffix(wrapComment(comment, "# ", defaultWidth-2*depth), "\n")
		}
	}
	var manifest bytes.Buffer
	manifest.WriteString(moveHeading(m))
	encoder := yaml.NewEncoder(&manifest)
	encoder.SetIndent(2)
	if err := encoder.Encode(object); err != nil {
		return "", fmt.Errorf("encoding the policy of %s: %w", m.Targets[0], err)
	}
	return manifest.String(), nil
}

// inBlocks undoes the style of JSON.
func inBlocks(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		inBlocks(child)
	}
}

// yamlField is a field of a mapping; an empty node if it has none.
func yamlField(node *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return &yaml.Node{}
}

// moveHeading says what the policy takes the place of.
func moveHeading(m migrate.Move) string {
	origins := strings.Join(originNames(m.Origins), ", ")
	text := wrapComment(strings.Join(m.Targets, ", ")+": scaled today by "+origins+".", "# ", defaultWidth)
	if len(m.Notes) > 0 {
		text += "# What becomes of the rest:\n"
		for _, note := range m.Notes {
			text += wrapComment("- "+note, "#   ", defaultWidth)
		}
	}
	return text
}

func originNames(origins []migrate.Origin) (all []string) {
	for _, o := range origins {
		all = append(all, o.String())
	}
	return all
}

// wrapComment breaks a text into lines, each after the prefix. The lines after "- " are indented.
func wrapComment(text, prefix string, width int) string {
	next := prefix
	if strings.HasPrefix(text, "- ") {
		next += "  "
	}
	return output.Wrap(text, prefix, next, width) + "\n"
}

// namespacesOf are the namespaces of moves, sorted.
func namespacesOf(result migrate.Result) (all []string) {
	for _, m := range result.Moves {
		all = append(all, m.Namespace())
	}
	for i := range result.Begun {
		all = append(all, result.Begun[i].Policy.Namespace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

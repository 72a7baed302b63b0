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

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// governor is a policy or a set that has the mode of policies.
type governor struct{ resource, namespace, name string }

func (g governor) String() string { return g.resource + "/" + g.name }

// Short names of the resources.
const (
	resourcePolicy = "pap"
	resourceSet    = "paps"
)

func (g governor) patch(mode v1alpha1.Mode) string {
	if g.resource == resourceSet {
		return fmt.Sprintf(`{"spec":{"template":{"spec":{"mode":"%s"}}}}`, mode)
	}
	return fmt.Sprintf(`{"spec":{"mode":"%s"}}`, mode)
}

func (g governor) switchCommand() string {
	return fmt.Sprintf("kubectl -n %s patch %s %s --type=merge -p '%s'", g.namespace, g.resource, g.name,
		g.patch(v1alpha1.ModeAuto))
}

func (g governor) undoCommand() string {
	return fmt.Sprintf("kubectl -n %s delete %s %s", g.namespace, g.resource, g.name)
}

func governorOf(m migrate.Move) governor {
	if m.Set != nil {
		return governor{resourceSet, m.Set.Namespace, m.Set.Name}
	}
	return governor{resourcePolicy, m.Policy.Namespace, m.Policy.Name}
}

// moveSteps are the order of a move that changes no replicas, as comments of YAML.
func moveSteps(result migrate.Result) string {
	var s stepText
	s.begun(result.Begun)
	if len(result.Foreign) > 0 {
		s.text(leftAlone(result.Foreign))
	}
	if len(result.Moves) == 0 {
		return s.String()
	}
	s.text("How to move over. No step moves a replica.")
	s.text("1. Create the policies, in mode Recommend, beside what scales today. Or: kubectl pap migrate --apply")
	s.command("kubectl apply -f FILE")
	s.text("2. Compare through a busy hour: DESIRED is what a policy would have, SPEC what is set today.")
	for _, namespace := range namespacesOf(result) {
		s.command("kubectl -n " + namespace + " get pap -o wide")
	}
	var origins []migrate.Origin
	var governors []governor
	for _, m := range result.Moves {
		if m.Spec().ConflictPolicy != v1alpha1.ConflictTakeOver {
			continue
		}
		governors = append(governors, governorOf(m))
		origins = append(origins, m.Origins...)
	}
	if len(governors) == 0 {
		return s.String()
	}
	s.text("3. Switch, one after another. The adapter suspends what scales today, keeps the replicas, and scales them " +
		"from then on. It needs rbac.takeOver=true of the chart. Or run kubectl pap migrate --apply again.")
	for _, g := range governors {
		s.command(g.switchCommand())
	}
	s.text("4. To go back, delete the policy: the adapter restores what it suspended.")
	for _, g := range governors {
		s.command(g.undoCommand())
	}
	s.text("5. To stay, delete from your manifests what follows. A tool that applies its manifests again and again " +
		"would undo step 3, which the policy reports (Recreated): with such a tool do steps 3 and 5 in one commit " +
		"(docs/gitops.md).")
	for _, o := range origins {
		s.command(removal(o))
	}
	return s.String()
}

// removal is what to delete from which manifest.
func removal(o migrate.Origin) string {
	object := fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
	switch {
	case o.Entry != "":
		return fmt.Sprintf("%s, %s: %s", object, o.Entry, o.Remove)
	case o.Remove != "":
		return fmt.Sprintf("%s, spec: %s", object, o.Remove)
	case o.Restores:
		return object + ", once restoreToOriginalReplicaCount is false"
	default:
		return object
	}
}

func leftToDelete(g begunBy) string {
	var left []string
	for i := range g.policies {
		for _, o := range g.policies[i].Origins {
			left = append(left, removal(o))
		}
	}
	return "To stay, delete from your manifests: " + strings.Join(left, "; ")
}

// comparison has the replicas of a decision and of today.
func comparison(b *migrate.Begun) string {
	today := "unknown"
	if spec := b.Policy.Status.SpecReplicas; spec != nil {
		today = fmt.Sprint(*spec)
	}
	text := fmt.Sprintf("%s: %d replicas decided, %s set today", plan.Name(b.Policy.Spec),
		*b.Policy.Status.DesiredReplicas, today)
	if len(b.Origins) > 0 {
		text += " by " + strings.Join(originNames(b.Origins), ", ")
	}
	return text
}

// leftAlone names HorizontalPodAutoscalers that are not translated.
func leftAlone(foreign []string) string {
	return fmt.Sprintf("Left alone, since neither their metrics nor their targets name a subscription: "+
		"HorizontalPodAutoscalers %s. If one of the targets consumes from Pulsar, write a policy with spec.subscription "+
		"(examples/deployment.yaml).", plan.Enumerate(foreign, 10, ", "))
}

// stepText collects comments of YAML.
type stepText struct{ strings.Builder }

func (s *stepText) text(text string) { s.WriteString("#\n" + wrapComment(text, "# ", defaultWidth)) }

// command is not wrapped, so that it can be pasted.
func (s *stepText) command(text string) { s.WriteString("#      " + text + "\n") }

// begun lists policies that exist.
func (s *stepText) begun(all []migrate.Begun) {
	for i := range all {
		b := &all[i]
		s.text(fmt.Sprintf("%s: AutoscalingPolicy %s/%s scales it in mode %s, beside %s. It is not written again.",
			plan.Name(b.Policy.Spec), b.Policy.Namespace, b.Policy.Name, b.Policy.Spec.Mode,
			strings.Join(originNames(b.Origins), ", ")))
	}
}

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

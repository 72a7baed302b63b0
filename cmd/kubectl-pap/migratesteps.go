// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
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

// patch sets the mode.
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

// governorOf is what a move creates.
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
	default:
		return object
	}
}

// leftToDelete names what is left in manifests.
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
	const most = 10
	shown := slices.Clone(foreign[:min(most, len(foreign))])
	if len(foreign) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(foreign)-most))
	}
	return fmt.Sprintf("Left alone, since neither their metrics nor their targets name a subscription: "+
		"HorizontalPodAutoscalers %s. If one of the targets consumes from Pulsar, write a policy with spec.subscription "+
		"(examples/deployment.yaml).", strings.Join(shown, ", "))
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

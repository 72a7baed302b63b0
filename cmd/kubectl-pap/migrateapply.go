// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// mover does the next step of each target.
type mover struct {
	kube client.Client
	in   *bufio.Reader
	out  io.Writer
	// yes is the answer to all questions.
	yes bool
}

func (m mover) move(ctx context.Context, result migrate.Result) error {
	return errors.Join(m.create(ctx, result.Moves), m.switchOver(ctx, result.Begun))
}

// say reports a step. The steps go on without their reader.
func (m mover) say(format string, args ...any) { _, _ = fmt.Fprintf(m.out, format+"\n", args...) }

// ask is true for y or yes. The end of the input is a no.
func (m mover) ask(question string) (bool, error) {
	if m.yes {
		return true, nil
	}
	if _, err := io.WriteString(m.out, question+" [y/N] "); err != nil {
		return false, err
	}
	answer, err := m.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	if err != nil {
		m.say("")
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// create creates all policies and sets in mode Recommend.
func (m mover) create(ctx context.Context, moves []migrate.Move) error {
	if len(moves) == 0 {
		return nil
	}
	for _, move := range moves {
		m.say("%s for %s", governorOf(move), strings.Join(move.Targets, ", "))
	}
	agreed, err := m.ask(fmt.Sprintf("Create these %d in mode Recommend, which writes no replicas?", len(moves)))
	if err != nil {
		return err
	}
	if !agreed {
		m.say("Nothing was created.")
		return nil
	}
	for _, move := range moves {
		var object client.Object = move.Policy
		if move.Set != nil {
			object = move.Set
		}
		err := m.kube.Create(ctx, object, client.FieldOwner("kubectl-pap"))
		if apierrors.IsAlreadyExists(err) {
			m.say("%s exists in namespace %s: wait until the adapter has made its policies, or apply the YAML under another "+
				"name", governorOf(move), move.Namespace())
			continue
		}
		if err != nil {
			return fmt.Errorf("creating %s in namespace %s: %w", governorOf(move), move.Namespace(), withEditFix(err))
		}
		m.say("%s created in namespace %s", governorOf(move), move.Namespace())
	}
	m.say("Compare through a busy hour (kubectl pap top -o wide), then run this again to switch.")
	return nil
}

// withEditFix adds the fix to an error of a write.
func withEditFix(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: bind the ClusterRole edit, or pulsar-autoscaler-edit, to your user", err)
	}
	return withFix(err)
}

// begunBy are the policies that a switch of one object switches.
type begunBy struct {
	governor
	policies []migrate.Begun
}

// switchOver sets policies and sets that are ready to mode Auto.
func (m mover) switchOver(ctx context.Context, begun []migrate.Begun) error {
	var errs []error
	for _, group := range byGovernor(begun) {
		if why := group.waits(); why != "" {
			m.say("%s in namespace %s: %s", group.governor, group.namespace, why)
			if !group.settled() {
				errs = append(errs, fmt.Errorf("%s in namespace %s was not switched", group.governor, group.namespace))
			}
			continue
		}
		for i := range group.policies {
			m.say("%s", comparison(group.policies[i]))
		}
		agreed, err := m.ask(fmt.Sprintf("Switch %s in namespace %s to mode Auto?", group.governor, group.namespace))
		if err != nil {
			return err
		}
		if !agreed {
			continue
		}
		if err := m.setAuto(ctx, group.governor); err != nil {
			return err
		}
		m.say("%s switched. The adapter suspends the other autoscaler and keeps the replicas:\n"+
			"  kubectl -n %s wait %s --for=condition=Ready --timeout=5m\nThe way back:\n  %s",
			group.governor, group.namespace, group.governor, group.undoCommand())
	}
	return errors.Join(errs...)
}

func (m mover) setAuto(ctx context.Context, g governor) error {
	meta := metav1.ObjectMeta{Namespace: g.namespace, Name: g.name}
	var object client.Object = &v1alpha1.AutoscalingPolicy{ObjectMeta: meta}
	if g.resource == resourceSet {
		object = &v1alpha1.AutoscalingPolicySet{ObjectMeta: meta}
	}
	patch := client.RawPatch(types.MergePatchType, []byte(g.patch(v1alpha1.ModeAuto)))
	if err := m.kube.Patch(ctx, object, patch, client.FieldOwner("kubectl-pap")); err != nil {
		return fmt.Errorf("setting the mode of %s in namespace %s: %w", g, g.namespace, withEditFix(err))
	}
	return nil
}

// byGovernor groups policies by the set that controls them; a policy without a set is a group of its own.
func byGovernor(begun []migrate.Begun) (groups []begunBy) {
	at := map[governor]int{}
	for i := range begun {
		p := &begun[i].Policy
		g := governor{resourcePolicy, p.Namespace, p.Name}
		if owner := set.Of(p); owner != nil {
			g = governor{resourceSet, p.Namespace, owner.Name}
		}
		index, known := at[g]
		if !known {
			index = len(groups)
			at[g] = index
			groups = append(groups, begunBy{governor: g})
		}
		groups[index].policies = append(groups[index].policies, begun[i])
	}
	return groups
}

// settled reports whether nothing remains to do.
func (g begunBy) settled() bool {
	for i := range g.policies {
		if !g.policies[i].Policy.Spec.Mode.IsAuto() {
			return false
		}
	}
	return true
}

// waits is why not to switch; empty for no reason.
func (g begunBy) waits() string {
	if g.settled() {
		return "its mode is Auto already. " + leftToDelete(g)
	}
	for i := range g.policies {
		p := &g.policies[i].Policy
		ready := apimeta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case p.Spec.Mode != v1alpha1.ModeRecommend:
			return fmt.Sprintf("policy %s has mode %s: set it to Recommend first", p.Name, p.Spec.Mode)
		case p.Spec.ConflictPolicy != v1alpha1.ConflictTakeOver:
			return fmt.Sprintf("policy %s has conflictPolicy Refuse: set it to TakeOver, so that %s is suspended", p.Name,
				strings.Join(originNames(g.policies[i].Origins), ", "))
		case ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != p.Generation:
			message := "the adapter has not read it yet"
			if ready != nil {
				message = ready.Reason + ": " + ready.Message
			}
			return fmt.Sprintf("policy %s is not Ready: %s", p.Name, message)
		case p.Status.DesiredReplicas == nil:
			return fmt.Sprintf("policy %s has no decision yet: run this again", p.Name)
		}
	}
	return ""
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
func comparison(b migrate.Begun) string {
	today := "unknown"
	if spec := b.Policy.Status.SpecReplicas; spec != nil {
		today = fmt.Sprint(*spec)
	}
	return fmt.Sprintf("%s: %d replicas decided, %s set today by %s", plan.Name(b.Policy.Spec),
		*b.Policy.Status.DesiredReplicas, today, strings.Join(originNames(b.Origins), ", "))
}

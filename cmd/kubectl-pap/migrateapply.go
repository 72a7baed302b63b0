// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

const fieldOwner = client.FieldOwner("kubectl-pap")

type mover struct {
	kube client.Client
	in   *bufio.Reader
	out  io.Writer
	// policies are all that exist.
	policies []v1alpha1.AutoscalingPolicy
	// yes is the answer to all questions.
	yes bool
}

func (m mover) move(ctx context.Context, result migrate.Result) error {
	return errors.Join(m.create(ctx, result.Moves), m.switchOver(ctx, result.Begun))
}

// say writes a sentence, and command what can be pasted, which is not wrapped.
func (m mover) say(format string, args ...any) {
	output.Printf(m.out, "%s\n", output.Wrap(fmt.Sprintf(format, args...), "", "  ", textWidth(m.out)))
}

func (m mover) command(format string, args ...any) { output.Printf(m.out, "  "+format+"\n", args...) }

func (m mover) ask(question string) (bool, error) {
	if m.yes {
		return true, nil
	}
	return confirmed(m.in, m.out, question)
}

func (m mover) create(ctx context.Context, moves []migrate.Move) error {
	if len(moves) == 0 {
		return nil
	}
	for _, move := range moves {
		m.say("%s in namespace %s for %s", governorOf(move), move.Namespace(), strings.Join(move.Targets, ", "))
		for _, note := range move.Notes {
			output.Printf(m.out, "%s", wrapComment("- "+note, "  ", textWidth(m.out)))
		}
	}
	agreed, err := m.ask(fmt.Sprintf("Create these %d in mode Recommend, which writes no replicas?", len(moves)))
	if err != nil {
		return err
	}
	if !agreed {
		m.say("Nothing was created.")
		return nil
	}
	var errs []error
	for _, move := range moves {
		err := m.kube.Create(ctx, moveObject(move), fieldOwner, client.FieldValidation(metav1.FieldValidationStrict))
		switch {
		case apierrors.IsAlreadyExists(err):
			errs = append(errs, fmt.Errorf("%s was created in namespace %s meanwhile, and is as it was: run this again",
				governorOf(move), move.Namespace()))
		case err != nil:
			errs = append(errs, fmt.Errorf("creating %s in namespace %s: %w", governorOf(move), move.Namespace(),
				withEditFix(err)))
			if !isRefused(err) {
				return errors.Join(errs...)
			}
		default:
			m.say("%s created in namespace %s", governorOf(move), move.Namespace())
		}
	}
	if len(errs) < len(moves) {
		m.say("Compare through a busy hour (kubectl pap top -o wide), then run this again to switch.")
	}
	return errors.Join(errs...)
}

// isRefused reports whether the API server answered about one object, so that the next may succeed.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// withEditFix adds the fix to an error of a write. A role does not change what admission and quotas forbid: RBAC's
// message is `User "jane" cannot create resource`.
func withEditFix(err error) error {
	switch {
	case !apierrors.IsForbidden(err):
		return withFix(err)
	case strings.Contains(err.Error(), `" cannot `):
		return fmt.Errorf("%w: bind the ClusterRole edit, or pulsar-autoscaler-edit, to your user", err)
	default:
		return err
	}
}

// begunBy are the policies that a switch of one object switches.
type begunBy struct {
	governor
	policies []migrate.Begun
}

// switchOver sets policies and sets that are ready to mode Auto.
func (m mover) switchOver(ctx context.Context, begun []migrate.Begun) error {
	var errs []error
	for _, group := range byGovernor(begun, m.policies) {
		if why, remains := group.waits(); why != "" {
			m.say("%s in namespace %s: %s", group.governor, group.namespace, why)
			if remains {
				errs = append(errs, fmt.Errorf("%s in namespace %s was not switched", group.governor, group.namespace))
			}
			continue
		}
		for i := range group.policies {
			if b := &group.policies[i]; !b.Policy.Spec.Mode.IsAuto() {
				m.say("%s", comparison(b))
			}
		}
		agreed, err := m.ask(fmt.Sprintf("Switch %s in namespace %s to mode Auto?", group.governor, group.namespace))
		if err != nil {
			return err
		}
		if !agreed {
			continue
		}
		if err := m.setAuto(ctx, group.governor); err != nil {
			errs = append(errs, err)
			if !isRefused(err) {
				break
			}
			continue
		}
		m.say("%s switched. The adapter suspends the other autoscaler and keeps the replicas:", group.governor)
		m.command("kubectl -n %s wait %s --for=condition=Ready --timeout=5m", group.namespace, group.governor)
		m.say("The way back:")
		m.command("%s", group.undoCommand())
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
	if err := m.kube.Patch(ctx, object, patch, fieldOwner); err != nil {
		return fmt.Errorf("setting the mode of %s in namespace %s: %w", g, g.namespace, withEditFix(err))
	}
	return nil
}

// byGovernor groups policies by the set that controls them, with all other policies of the set; a policy without a set
// is a group of its own.
func byGovernor(begun []migrate.Begun, all []v1alpha1.AutoscalingPolicy) (groups []begunBy) {
	at, seen := map[governor]int{}, map[client.ObjectKey]bool{}
	for i := range begun {
		p := &begun[i].Policy
		g := governorOfPolicy(p)
		index, known := at[g]
		if !known {
			index = len(groups)
			at[g] = index
			groups = append(groups, begunBy{governor: g})
		}
		groups[index].policies = append(groups[index].policies, begun[i])
		seen[client.ObjectKeyFromObject(p)] = true
	}
	for i := range all {
		if index, known := at[governorOfPolicy(&all[i])]; known && !seen[client.ObjectKeyFromObject(&all[i])] {
			groups[index].policies = append(groups[index].policies, migrate.Begun{Policy: all[i]})
		}
	}
	return groups
}

// governorOfPolicy is the set that controls a policy, or the policy.
func governorOfPolicy(p *v1alpha1.AutoscalingPolicy) governor {
	if owner := set.Of(p); owner != nil {
		return governor{resourceSet, p.Namespace, owner.Name}
	}
	return governor{resourcePolicy, p.Namespace, p.Name}
}

// origins are the names of all other autoscalers.
func (g begunBy) origins() string {
	var all []string
	for i := range g.policies {
		all = append(all, originNames(g.policies[i].Origins)...)
	}
	return strings.Join(all, ", ")
}

// waits is why not to switch, empty for no reason, and whether a switch remains to do.
func (g begunBy) waits() (why string, remains bool) {
	auto := 0
	for i := range g.policies {
		switch p := &g.policies[i].Policy; {
		case p.Spec.Mode.IsAuto():
			auto++
		case p.Spec.Mode == v1alpha1.ModePaused && pausedOrigin(&g.policies[i]) != nil:
			return fmt.Sprintf("policy %s is paused, as is %s", p.Name, pausedOrigin(&g.policies[i])), false
		case p.Spec.Mode != v1alpha1.ModeRecommend:
			return fmt.Sprintf("policy %s has mode %s: set it to Recommend first", p.Name, p.Spec.Mode), true
		case p.Spec.ConflictPolicy != v1alpha1.ConflictTakeOver:
			return fmt.Sprintf("policy %s has conflictPolicy Refuse: leave it in mode Recommend if %s has to go on, such as "+
				"for a trigger without a counterpart; otherwise set TakeOver, so that %s is suspended", p.Name, g.origins(),
				g.origins()), false
		default:
			if why := notReady(&g.policies[i]); why != "" {
				return why, true
			}
		}
	}
	if auto == len(g.policies) {
		return "its mode is Auto already. " + leftToDelete(g), false
	}
	return "", false
}

// pausedOrigin is an autoscaler of the policy's target that a user paused; nil for none.
func pausedOrigin(b *migrate.Begun) *migrate.Origin {
	if i := slices.IndexFunc(b.Origins, func(o migrate.Origin) bool { return o.Paused }); i >= 0 {
		return &b.Origins[i]
	}
	return nil
}

// notReady is why a policy in mode Recommend should not be switched; empty for no reason.
func notReady(b *migrate.Begun) string {
	p := &b.Policy
	ready := apimeta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	switch applied := apimeta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAutoscalerApplied); {
	case ready == nil || ready.ObservedGeneration != p.Generation:
		return fmt.Sprintf("policy %s is not Ready: the adapter has not read it yet", p.Name)
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("policy %s is not Ready: %s: %s", p.Name, ready.Reason, ready.Message)
	case applied != nil && applied.Status == metav1.ConditionTrue && applied.Reason != v1alpha1.ReasonRecommendOnly &&
		applied.Reason != v1alpha1.ReasonPaused: // which ends without a change of the policy
		return fmt.Sprintf("policy %s would not scale in mode Auto: %s: %s", p.Name, applied.Reason, applied.Message)
	case pausedOrigin(b) != nil:
		return fmt.Sprintf("%s is paused, and policy %s would scale its target in mode Auto: resume it first",
			pausedOrigin(b), p.Name)
	case served.SwitchedOff(p) != "":
		return fmt.Sprintf("policy %s would not scale in mode Auto: %s", p.Name, served.SwitchedOff(p))
	case p.Status.DesiredReplicas == nil:
		return fmt.Sprintf("policy %s has no decision yet: run this again", p.Name)
	}
	return ""
}

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/migrate"
)

// fieldOwner owns the fields that the command writes.
const fieldOwner = client.FieldOwner("kubectl-pap")

// mover does the next step of each target.
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
		m.say("%s in namespace %s for %s", governorOf(move), move.Namespace(), strings.Join(move.Targets, ", "))
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
		var object client.Object = move.Policy
		if move.Set != nil {
			object = move.Set
		}
		err := m.kube.Create(ctx, object, fieldOwner, client.FieldValidation(metav1.FieldValidationStrict))
		switch {
		case apierrors.IsAlreadyExists(err):
			errs = append(errs, fmt.Errorf("%s was created in namespace %s meanwhile, and is as it was: run this again",
				governorOf(move), move.Namespace()))
		case err != nil:
			return fmt.Errorf("creating %s in namespace %s: %w", governorOf(move), move.Namespace(), withEditFix(err))
		default:
			m.say("%s created in namespace %s", governorOf(move), move.Namespace())
		}
	}
	m.say("Compare through a busy hour (kubectl pap top -o wide), then run this again to switch.")
	return errors.Join(errs...)
}

// withEditFix adds the fix to an error of a write.
func withEditFix(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: bind the ClusterRole edit, or pulsar-autoscaler-edit, to your user", err)
	}
	return withFix(err)
}

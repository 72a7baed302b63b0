// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// Config configures a run. Scenario, Schedule, Kube and Progress are required. The scenario passed its checks for the
// run, see scenario.Scenario.CheckContenders and CheckPulsar.
type Config struct {
	// Scenario has contenders, unless Target is set.
	Scenario scenario.Scenario
	Schedule load.Schedule
	Kube     client.Client
	// Target gets the load instead of contenders.
	Target Target
	Access Access
	// Differs are flags of the cluster that differ from their shipped defaults.
	Differs []string
	// Break stops and resumes the answers of Pulsar's admin service to autoscalers; nil without an outage.
	Break func(broken bool) error
	// Progress gets a line for each step.
	Progress io.Writer
}

// runner is a run.
type runner struct {
	Config

	id, namespace string
	admin         admin
	begun         time.Time
}

// Run measures all contenders and cleans up, also after an error and after ctx ends. If only the clean-up fails, the
// result has its verdict. With a Target there is nothing to clean up.
func Run(ctx context.Context, config Config) (result Result, err error) {
	r := newRunner(config)
	if r.admin, err = config.Access.admin(config.Scenario.Pulsar.AdminURL); err != nil {
		return Result{}, err
	}
	pulsarClient, err := config.Access.Client(config.Scenario.Pulsar.ServiceURL)
	if err != nil {
		return Result{}, err
	}
	defer pulsarClient.Close()
	result = newResult(config.Scenario, config.Schedule, r.id)
	result.Begun, result.Differs = r.begun.UTC(), append(result.Differs, config.Differs...)
	if config.Target != (Target{}) {
		return r.runTarget(ctx, pulsarClient, result)
	}
	if err := r.preflight(ctx); err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, r.clean(ctx)) }()
	if err := r.createNamespace(ctx); err != nil {
		return Result{}, err
	}
	if err := r.copySecret(ctx); err != nil {
		return Result{}, err
	}
	if result.Contenders, err = r.measureAll(ctx, pulsarClient); err != nil {
		return Result{}, err
	}
	result.Verdict = judge(result.Contenders, config.Scenario.Limits)
	return result, nil
}

// runTarget measures a target against the objective of its own policy.
func (r *runner) runTarget(ctx context.Context, pulsarClient pulsar.Client, result Result) (Result, error) {
	s, err := r.target(ctx)
	if err != nil {
		return Result{}, err
	}
	r.tell("%s: publishing %d messages into %s; an interruption does not remove them", s.name, r.due(), s.input)
	measured, err := r.measure(ctx, pulsarClient, s)
	if err != nil {
		return Result{}, err
	}
	result.LatencyObjectiveSeconds = s.objective.Seconds()
	result.Contenders = []Contender{measured}
	result.Verdict = judge(result.Contenders, r.Scenario.Limits)
	return result, nil
}

func newRunner(config Config) *runner {
	const bytes = 3
	id := make([]byte, bytes)
	_, _ = rand.Read(id) // never fails
	name := hex.EncodeToString(id)
	return &runner{Config: config, id: name, namespace: "pap-bench-" + name, begun: time.Now()}
}

func (r *runner) tell(format string, args ...any) {
	output.Printf(r.Progress, "%4.0f s  "+format+"\n", append([]any{time.Since(r.begun).Seconds()}, args...)...)
}

// due is the number of messages in the load.
func (r *runner) due() (messages int64) {
	for range r.Schedule.Due() {
		messages++
	}
	return messages
}

func (r *runner) entrants() []entrant {
	var all []entrant
	for _, c := range r.Scenario.Contenders {
		all = append(all, entrant{Contender: c, run: r.id, namespace: r.namespace, scenario: r.Scenario})
	}
	return all
}

// createNamespace creates the namespace before anything else: a clean-up finds the topics by it.
func (r *runner) createNamespace(ctx context.Context) error {
	var topics []string
	for _, e := range r.entrants() {
		topics = append(topics, e.topics()...)
	}
	r.tell("creating namespace %s", r.namespace)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: r.namespace, Labels: map[string]string{labelManagedBy: managedBy, labelRun: r.id},
		Annotations: map[string]string{
			annotationAdmin: r.Scenario.Pulsar.AdminURL, annotationTopics: strings.Join(topics, " "),
		},
	}}
	if err := r.Kube.Create(ctx, namespace); err != nil {
		return fmt.Errorf("creating namespace %s: %w", r.namespace, err)
	}
	return nil
}

// measureAll measures contenders one after another or in parallel.
func (r *runner) measureAll(ctx context.Context, pulsarClient pulsar.Client) ([]Contender, error) {
	entrants := r.entrants()
	measured := make([]Contender, len(entrants))
	if r.Scenario.Order == scenario.SideBySide {
		if err := r.each(ctx, func(ctx context.Context, i int) error { return r.create(ctx, entrants[i]) }); err != nil {
			return nil, err
		}
		err := r.each(ctx, func(ctx context.Context, i int) (err error) {
			measured[i], err = r.measure(ctx, pulsarClient, entrants[i].subject())
			return err
		})
		return measured, err
	}
	for i, e := range entrants {
		err := r.create(ctx, e)
		if err == nil {
			measured[i], err = r.measure(ctx, pulsarClient, e.subject())
		}
		if err == nil { // the next one does not share the cluster
			err = removeObjects(ctx, r.Kube, r.namespace)
		}
		if err != nil {
			return nil, err
		}
	}
	return measured, nil
}

// each runs do for all contenders in parallel, and cancels the others after an error.
func (r *runner) each(ctx context.Context, do func(ctx context.Context, index int) error) error {
	group, grouped := errgroup.WithContext(ctx)
	for i := range r.Scenario.Contenders {
		group.Go(func() error { return do(grouped, i) })
	}
	return group.Wait()
}

// clean deletes everything that was created, also after ctx ends, in limited time.
func (r *runner) clean(ctx context.Context) error {
	const limit = 5 * time.Minute
	r.tell("cleaning up")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := Clean(ctx, r.Kube, r.namespace, r.Scenario.Pulsar.AdminURL, r.Access); err != nil {
		return fmt.Errorf("%w; clean up with kubectl pap bench clean", err)
	}
	return nil
}

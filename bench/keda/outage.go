// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/faults"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// outageService is the service time. It is long, so that the backlog of outageBacklog messages outlasts the outage.
	outageService = 2 * time.Second
	outageMost    = 6
	outageBacklog = 3000
	// outageThreshold makes KEDA's pulsar scaler request outageMost replicas.
	outageThreshold = outageBacklog / outageMost
	outageObjective = time.Minute
	// outageReady is the number of replicas that each target must have at the start.
	outageReady = 2
	wakeTimeout = 4 * time.Minute
)

// entrant is a contender with its Function.
type entrant struct {
	job

	f *stage.Function
}

// outage runs the part outage on a real broker.
func outage(ctx context.Context, o options, r *report, progress io.Writer) error {
	e, err := openEnvironment(ctx, progress)
	if err != nil {
		return err
	}
	defer e.Close()
	r.Pulsar = e.Broker.Version()
	entrants, err := e.addOutageEntrants(ctx, o)
	if err != nil {
		return err
	}
	e.tell("outage: waiting for at least %d replicas of each of %d Functions", outageReady, len(entrants))
	if err := e.waitAwake(ctx, entrants); err != nil {
		return err
	}
	if err := command.Pause(ctx, pollingInterval); err != nil { // KEDA polls each once more
		return err
	}
	e.tell("outage: the admin service stops answering for %s", o.outage)
	s := span{begun: time.Now()}
	resumed := make(chan struct{})
	e.proxy.Falsify(faults.Hangs(resumed), faults.Always)
	err = command.Pause(ctx, o.outage)
	s.ended = time.Now()
	e.proxy.Tell()
	close(resumed)
	if err != nil {
		return err
	}
	timelines := map[string][][]pods.Sample{}
	for _, p := range entrants {
		timelines[p.contender] = append(timelines[p.contender], e.Mesh.Timeline(stage.Namespace, p.function))
		if done, _ := p.f.Score.Totals(); int64(done) >= p.f.Published() {
			return fmt.Errorf("the backlog of %s did not outlast the outage: %d messages", p.function, done)
		}
	}
	for _, name := range o.of(partOutage) {
		fell := newFall(timelines[name], s)
		r.of(name).fall = fell
		e.tell("outage: %s: at least %s replicas before, %s during it, %s scaled to zero", name,
			output.Whole(fell.OutageHadReplicas), output.Whole(fell.OutageMinReplicas),
			of(fell.OutageFell, fell.OutageTargets))
	}
	return nil
}

// addOutageEntrants creates the Functions of all contenders, with their backlogs.
func (e *environment) addOutageEntrants(ctx context.Context, o options) ([]entrant, error) {
	var entrants []entrant
	var jobs []job
	for _, name := range o.of(partOutage) {
		e.tell("outage: %d Functions for %s", o.targets, name)
		for i := range o.targets {
			p, err := e.addEntrant(ctx, name, stage.FunctionConfig{
				Name: fmt.Sprintf("outage-%s-%d", words(name), i), ServiceTime: outageService, Objective: outageObjective,
				ReceiverQueueSize: 10, // so that each replica has messages
			})
			if err != nil {
				return nil, err
			}
			p.objective, p.cooldown, p.most, p.threshold = outageObjective, o.cooldown, outageMost, outageThreshold
			entrants, jobs = append(entrants, p), append(jobs, p.job)
		}
	}
	if err := e.stagger(ctx, entrants, o.targets); err != nil {
		return nil, err
	}
	e.tell("outage: waiting for KEDA's autoscalers")
	if err := errors.Join(e.waitForAutoscalers(ctx, jobs), e.waitForReadings(ctx, jobs)); err != nil {
		return nil, err
	}
	e.tell("outage: restarting KEDA's operator")
	if err := e.KEDA.Operator.Restart(ctx); err != nil {
		return nil, err
	}
	e.tell("outage: publishing %d messages to each", outageBacklog)
	return entrants, publishAll(ctx, entrants)
}

// addEntrant creates a Function with its topic and its subscription, without replicas.
func (e *environment) addEntrant(ctx context.Context, contender string, config stage.FunctionConfig) (entrant, error) {
	config.AdminURL = e.server.URL
	f, err := e.AddFunction(ctx, config)
	if err != nil {
		return entrant{}, err
	}
	if err := e.scale(ctx, config.Name, 0); err != nil {
		return entrant{}, err
	}
	return entrant{f: f, job: job{
		contender: contender, function: config.Name, topic: f.Topic, adminURL: config.AdminURL, scaler: e.scalerAddress(),
	}}, nil
}

// stagger creates the autoscalers of every contender over a pollingInterval. The effect of an outage depends on the
// phases of KEDA's polls and the syncs of the HorizontalPodAutoscaler. Both start with the ScaledObject; after a
// restart of the operator all its polls start together.
func (e *environment) stagger(ctx context.Context, entrants []entrant, targets int) error {
	e.tell("outage: creating autoscalers, over %s", pollingInterval)
	for i := range targets {
		for at := i; at < len(entrants); at += targets {
			if err := e.Client.Create(ctx, entrants[at].object()); err != nil {
				return fmt.Errorf("creating %s of %s: %w", entrants[at].function, entrants[at].contender, err)
			}
		}
		if err := command.Pause(ctx, pollingInterval/time.Duration(targets)); err != nil {
			return err
		}
	}
	return nil
}

// publishAll publishes the backlogs.
func publishAll(ctx context.Context, entrants []entrant) error {
	const writers, within = 4, time.Second
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, p := range entrants {
		group.Go(func() error {
			loading, stop := context.WithTimeout(ctx, within)
			defer stop()
			return p.f.Publish(loading, load.Constant(outageBacklog/within.Seconds()))
		})
	}
	return group.Wait()
}

// waitAwake waits until every target has enough replicas.
func (e *environment) waitAwake(ctx context.Context, entrants []entrant) error {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	return cluster.WaitFor(ctx, "replicas under backlog", look, func(context.Context) (bool, string, error) {
		for _, p := range entrants {
			timeline := e.Mesh.Timeline(stage.Namespace, p.function)
			if len(timeline) == 0 || timeline[len(timeline)-1].Desired < outageReady {
				return false, p.function, nil
			}
		}
		return true, "", nil
	})
}

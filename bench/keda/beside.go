// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// idleTimeout is how long the last messages and the way back to zero may take: KEDA's HorizontalPodAutoscaler holds
// replicas for 5 minutes, but its way to zero does not ask it.
const idleTimeout = 4 * time.Minute

// entrant is a contender with its Function.
type entrant struct {
	job

	f     *stage.Function
	proxy *proxy
}

// besides runs the part of that name.
func (e *environment) beside(ctx context.Context, o options, r *report) (err error) {
	entrants, err := e.addEntrants(ctx, o)
	if err != nil {
		return err
	}
	for _, wave := range []struct {
		name   string
		length time.Duration
		note   func(c *contender, a account)
	}{
		{"first", o.first, func(c *contender, a account) { c.FirstStep = &a }},
		{"second", o.second, func(c *contender, a account) { c.account = a }},
	} {
		if err := e.midway(ctx, entrants); err != nil {
			return err
		}
		e.tell("beside: %s step, %g messages/s for %s", wave.name, o.rate, wave.length)
		accounts, err := e.wave(ctx, entrants, o, wave.length)
		if err != nil {
			return fmt.Errorf("%s step: %w", wave.name, err)
		}
		for i, p := range entrants {
			wave.note(r.of(p.contender, o), accounts[i])
			e.tell("beside: %s", describe(p.contender, accounts[i]))
		}
	}
	return e.removeEntrants(ctx, entrants)
}

func describe(contender string, a account) string {
	return fmt.Sprintf("%s: first replica %s s, enough %s s, late %s %%, replica-seconds %s, %s changes, %s requests",
		contender, output.Number(a.FirstReplicaSeconds, 1), output.Number(a.EnoughReplicasSeconds, 1),
		output.Number(a.LatePct, 2), output.Number(a.ReplicaSeconds, 0), output.Whole(a.ReplicaChanges),
		output.Whole(a.BrokerRequests))
}

// addEntrants makes a Function for each contender, which has consumed and is at zero, and gives it into the contender's
// hands.
func (e *environment) addEntrants(ctx context.Context, o options) ([]entrant, error) {
	var entrants []entrant
	var jobs []job
	for _, name := range o.of(partBeside) {
		function := "beside-" + words(name)
		e.tell("beside: Function %s", function)
		p, err := e.addEntrant(ctx, name, stage.FunctionConfig{
			Name: function, ServiceTime: o.serviceTime, StartDelay: startDelay, Objective: o.objective, Progress: e.progress,
		})
		if err != nil {
			return nil, err
		}
		p.objective, p.cooldown, p.most = o.objective, o.cooldown, mostReplicas
		if name != kedaDefault {
			p.threshold = o.tuned()
		}
		entrants, jobs = append(entrants, p), append(jobs, p.job)
	}
	for _, p := range entrants {
		if err := e.Client.Create(ctx, p.object()); err != nil {
			return nil, fmt.Errorf("creating %s of %s: %w", p.function, p.contender, err)
		}
	}
	e.tell("beside: waiting for KEDA's autoscalers")
	if err := errors.Join(e.waitForAutoscalers(ctx, jobs), e.waitForReadings(ctx, jobs)); err != nil {
		return nil, err
	}
	_, err := e.waitIdle(ctx, entrants)
	return entrants, err
}

// midway waits until half a pollingInterval has passed since KEDA's pulsar scaler asked last, as it does once in every
// interval at zero: the step then waits for the next look of KEDA as long as it does on average. Without, it would come
// just after one, since what was awaited before ends with it.
func (e *environment) midway(ctx context.Context, entrants []entrant) error {
	asked := time.Time{}
	for _, p := range entrants {
		if p.contender == kedaTuned {
			asked = p.proxy.Asked()
		}
	}
	return command.Pause(ctx, untilMidway(asked, time.Now()))
}

// untilMidway is the time from now to the next middle between two looks, of which one was at asked.
func untilMidway(asked, now time.Time) time.Duration {
	if asked.IsZero() {
		return 0
	}
	return pollingInterval - (now.Sub(asked)+pollingInterval/2)%pollingInterval
}

// addEntrant makes a Function with its topic and its subscription, without replicas.
func (e *environment) addEntrant(ctx context.Context, contender string, config stage.FunctionConfig) (entrant, error) {
	proxy := e.proxies[contender]
	config.AdminURL = proxy.URL
	f, err := e.AddFunction(ctx, config)
	if err != nil {
		return entrant{}, err
	}
	if err := e.scale(ctx, config.Name, 0); err != nil {
		return entrant{}, err
	}
	return entrant{f: f, proxy: proxy, job: job{
		contender: contender, function: config.Name, topic: f.Topic, adminURL: proxy.URL, scaler: e.scalerAddress(),
	}}, nil
}

// tally of the entrant's topic now.
func (p entrant) tally() tally {
	done, late := p.f.Score.Totals()
	return tally{published: p.f.Published(), done: int64(done), late: int64(late)}
}

// wave publishes the same to all for a while, and tells how each has fared when all are back at zero.
func (e *environment) wave(
	ctx context.Context, entrants []entrant, o options, length time.Duration,
) ([]account, error) {
	before, asked := make([]tally, len(entrants)), make([]traffic, len(entrants))
	for i, p := range entrants {
		before[i], asked[i] = p.tally(), p.proxy.Traffic()
	}
	loading, stop := context.WithTimeout(ctx, length)
	defer stop()
	s := span{begun: time.Now()}
	var group errgroup.Group
	for _, p := range entrants {
		group.Go(func() error { return p.f.Publish(loading, load.Constant(o.rate)) })
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, err
	}
	e.tell("beside: waiting for the last messages, and for zero")
	idle, err := e.waitIdle(ctx, entrants)
	if err != nil {
		return nil, err
	}
	if !idle {
		e.tell("beside: not all are at zero after %s more", idleTimeout)
	}
	s.ended = time.Now()
	accounts := make([]account, len(entrants))
	for i, p := range entrants {
		accounts[i].follow(e.Mesh.Timeline(stage.Namespace, p.function), s, o.enough())
		accounts[i].LatePct = latePct(before[i], p.tally())
		through := p.proxy.Traffic().since(asked[i])
		accounts[i].BrokerRequests, accounts[i].BrokerBytes = &through.Requests, &through.Bytes
	}
	return accounts, nil
}

// waitIdle waits until all messages are done and no replica is left; false when that takes too long.
func (e *environment) waitIdle(ctx context.Context, entrants []entrant) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	err := cluster.WaitFor(limited, "zero replicas and no backlog", look, func(context.Context) (bool, string, error) {
		for _, p := range entrants {
			timeline, now := e.Mesh.Timeline(stage.Namespace, p.function), p.tally()
			if len(timeline) == 0 || timeline[len(timeline)-1].Started > 0 || timeline[len(timeline)-1].Desired > 0 ||
				now.done < now.published {
				return false, p.function, nil
			}
		}
		return true, "", nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// removeEntrants deletes the Functions and what scales them.
func (e *environment) removeEntrants(ctx context.Context, entrants []entrant) error {
	for _, p := range entrants {
		if err := e.Client.Delete(ctx, p.object()); err != nil {
			return fmt.Errorf("deleting what scales %s: %w", p.function, err)
		}
	}
	var errs []error
	for _, p := range entrants {
		errs = append(errs, p.f.Remove(ctx))
	}
	return errors.Join(errs...)
}

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

// quietTimeout is how long the last messages and the way back to zero may take: KEDA's HorizontalPodAutoscaler holds
// replicas for 5 minutes, but its way to zero does not ask it.
const quietTimeout = 4 * time.Minute

// player is a contender with its Function.
type player struct {
	job

	f     *stage.Function
	proxy *proxy
}

// besides plays the part of that name.
func (e *environment) beside(ctx context.Context, o options, r *report) (err error) {
	players, err := e.cast(ctx, o)
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
		if err := e.midway(ctx, players); err != nil {
			return err
		}
		e.tell("beside: %s step, %g messages/s for %s", wave.name, o.rate, wave.length)
		accounts, err := e.wave(ctx, players, o, wave.length)
		if err != nil {
			return fmt.Errorf("%s step: %w", wave.name, err)
		}
		for i, p := range players {
			wave.note(r.of(p.contender, o), accounts[i])
			e.tell("beside: %s", describe(p.contender, accounts[i]))
		}
	}
	return e.clear(ctx, players)
}

func describe(contender string, a account) string {
	return fmt.Sprintf("%s: first replica %s s, enough %s s, late %s %%, replica-seconds %s, %s changes, %s requests",
		contender,
		output.Number(a.FirstReplicaSeconds, 1), output.Number(a.EnoughReplicasSeconds, 1), output.Number(a.LatePct, 2), output.Number(a.ReplicaSeconds,
			0),
		output.Whole(a.ReplicaChanges), output.Whole(a.BrokerRequests))
}

// cast makes a Function for each contender, which has consumed and is at zero, and gives it into the contender's hands.
func (e *environment) cast(ctx context.Context, o options) ([]player, error) {
	var players []player
	var jobs []job
	for _, name := range o.of(partBeside) {
		function := "beside-" + words(name)
		e.tell("beside: Function %s", function)
		p, err := e.hire(ctx, name, stage.FunctionConfig{
			Name: function, ServiceTime: o.serviceTime, StartDelay: startDelay, Objective: o.objective, Progress: e.progress,
		})
		if err != nil {
			return nil, err
		}
		p.objective, p.cooldown, p.most = o.objective, o.cooldown, mostReplicas
		if name != kedaDefault {
			p.threshold = o.tuned()
		}
		players, jobs = append(players, p), append(jobs, p.job)
	}
	for _, p := range players {
		if err := e.Client.Create(ctx, p.object()); err != nil {
			return nil, fmt.Errorf("creating %s of %s: %w", p.function, p.contender, err)
		}
	}
	e.tell("beside: waiting for KEDA's autoscalers")
	if err := errors.Join(e.settle(ctx, jobs), e.knows(ctx, jobs)); err != nil {
		return nil, err
	}
	_, err := e.quiet(ctx, players)
	return players, err
}

// midway waits until half a pollingInterval has passed since KEDA's pulsar scaler asked last, as it does once in every
// interval at zero: the step then waits for the next look of KEDA as long as it does on average. Without, it would come
// just after one, since what was awaited before ends with it.
func (e *environment) midway(ctx context.Context, players []player) error {
	asked := time.Time{}
	for _, p := range players {
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

// hire makes a Function with its topic and its subscription, without replicas.
func (e *environment) hire(ctx context.Context, contender string, config stage.FunctionConfig) (player, error) {
	proxy := e.proxies[contender]
	config.AdminURL = proxy.URL
	f, err := e.AddFunction(ctx, config)
	if err != nil {
		return player{}, err
	}
	if err := e.scale(ctx, config.Name, 0); err != nil {
		return player{}, err
	}
	return player{f: f, proxy: proxy, job: job{
		contender: contender, function: config.Name, topic: f.Topic, adminURL: proxy.URL, scaler: e.scalerAddress(),
	}}, nil
}

// tally of the player's topic now.
func (p player) tally() tally {
	done, late := p.f.Score.Totals()
	return tally{published: p.f.Published(), done: int64(done), late: int64(late)}
}

// wave publishes the same to all for a while, and tells how each has fared when all are back at zero.
func (e *environment) wave(ctx context.Context, players []player, o options, length time.Duration) ([]account, error) {
	before, asked := make([]tally, len(players)), make([]traffic, len(players))
	for i, p := range players {
		before[i], asked[i] = p.tally(), p.proxy.Traffic()
	}
	loading, stop := context.WithTimeout(ctx, length)
	defer stop()
	s := span{begun: time.Now()}
	var group errgroup.Group
	for _, p := range players {
		group.Go(func() error { return p.f.Publish(loading, load.Constant(o.rate)) })
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, err
	}
	e.tell("beside: waiting for the last messages, and for zero")
	quiet, err := e.quiet(ctx, players)
	if err != nil {
		return nil, err
	}
	if !quiet {
		e.tell("beside: not all are at zero after %s more", quietTimeout)
	}
	s.ended = time.Now()
	accounts := make([]account, len(players))
	for i, p := range players {
		accounts[i].follow(e.Mesh.Timeline(stage.Namespace, p.function), s, o.enough())
		accounts[i].LatePct = latePct(before[i], p.tally())
		through := p.proxy.Traffic().since(asked[i])
		accounts[i].BrokerRequests, accounts[i].BrokerBytes = &through.Requests, &through.Bytes
	}
	return accounts, nil
}

// quiet waits until all messages are done and no replica is left; false when that takes too long.
func (e *environment) quiet(ctx context.Context, players []player) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, quietTimeout)
	defer cancel()
	err := cluster.WaitFor(limited, "everybody to be done and at zero", look, func(context.Context) (bool, string, error) {
		for _, p := range players {
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

// clear takes the players from the stage.
func (e *environment) clear(ctx context.Context, players []player) error {
	for _, p := range players {
		if err := e.Client.Delete(ctx, p.object()); err != nil {
			return fmt.Errorf("deleting what scales %s: %w", p.function, err)
		}
	}
	var errs []error
	for _, p := range players {
		errs = append(errs, p.f.Remove(ctx))
	}
	return errors.Join(errs...)
}

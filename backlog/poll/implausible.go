// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// implausibleAnswer is a first answer about a topic: the request, the sample, if any, and why it is implausible.
type implausibleAnswer struct {
	request backlog.Request
	sample  backlog.TopicSample
	reason  error
}

// fetchSecond returns the second answer about a topic, or why neither is accepted. There is no third request.
//
// It uses the other of the two calls that read a topic, with or without the age, and an exact count: neither a cache in
// between nor a counter that drifted gives the same answer again.
func (f implausibleAnswer) fetchSecond(ctx context.Context, p *Poller, topic backlog.Topic) (
	backlog.TopicSample, error,
) {
	request := f.request
	request.Detail = (request.Detail | backlog.Precise) ^ backlog.Age
	second, err := p.config.Source.Fetch(ctx, topic, request)
	if err == nil {
		err = p.feed.CheckSecond(topic, f.sample, second)
	}
	switch {
	case err == nil:
		p.implausibleAnswers.resolved.Add(1)
		return second, nil
	case errors.Is(err, backlog.ErrImplausible):
		p.implausibleAnswers.unresolved.Add(1)
		return backlog.TopicSample{}, err
	default:
		p.implausibleAnswers.failed.Add(1)
		return backlog.TopicSample{}, fmt.Errorf("%w (requested because of %w)", err, f.reason)
	}
}

// ImplausibleAnswers counts the implausible answers since the start: those that a second answer resolved, those that it
// did not resolve, and those without a second answer.
type ImplausibleAnswers struct{ Resolved, Unresolved, Failed int64 }

type implausibleAnswers struct{ resolved, unresolved, failed atomic.Int64 }

// ImplausibleAnswers returns the counts.
func (p *Poller) ImplausibleAnswers() ImplausibleAnswers {
	a := &p.implausibleAnswers
	return ImplausibleAnswers{Resolved: a.resolved.Load(), Unresolved: a.unresolved.Load(), Failed: a.failed.Load()}
}

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

// firstAnswer is a first answer about a topic: the request, the sample, if any, and why it is in doubt.
type firstAnswer struct {
	request backlog.Request
	sample  backlog.TopicSample
	doubt   error
}

// again returns the second answer about a topic, or why neither is accepted. There is no third request.
//
// It uses the other of the two calls that read a topic, with or without the age, and an exact count: neither a cache in
// between nor a counter that drifted gives the same answer again.
func (f firstAnswer) again(ctx context.Context, p *Poller, topic backlog.Topic) (backlog.TopicSample, error) {
	request := f.request
	request.Detail = (request.Detail | backlog.Precise) ^ backlog.Age
	second, err := p.config.Source.Fetch(ctx, topic, request)
	if err == nil {
		err = p.feed.Settle(topic, f.sample, second)
	}
	switch {
	case err == nil:
		p.secondLooks.settled.Add(1)
		return second, nil
	case errors.Is(err, backlog.ErrImplausible):
		p.secondLooks.implausible.Add(1)
		return backlog.TopicSample{}, err
	default:
		p.secondLooks.failed.Add(1)
		return backlog.TopicSample{}, fmt.Errorf("%w (requested because of %w)", err, f.doubt)
	}
}

// SecondLooks counts the answers in doubt since the start: those that a second answer settled, those that it did not
// settle, and those without a second answer.
type SecondLooks struct{ Settled, Implausible, Failed int64 }

// secondLooks counts them.
type secondLooks struct{ settled, implausible, failed atomic.Int64 }

// SecondLooks returns the counts.
func (p *Poller) SecondLooks() SecondLooks {
	s := &p.secondLooks
	return SecondLooks{Settled: s.settled.Load(), Implausible: s.implausible.Load(), Failed: s.failed.Load()}
}

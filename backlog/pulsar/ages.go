// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// ages bounds the calls that ask for an age, which brokers read from their storage, by admin URL. While that hangs, each
// such call holds a connection until it is given up: they may have half of them, and after some that failed one at a time
// probes the storage, as with hosts. A fetch whose age is held back has everything else.
type ages struct {
	breaker *breaker
	limiter *limiter
}

func newAges(config Config) ages {
	return ages{
		breaker: newBreaker(),
		limiter: newLimiter(max(1, config.MaxConnsPerHost/2), config.MaxRequestsPerSecondPerHost, nil),
	}
}

// acquire returns what to call with the outcome; nil when the age is held back.
func (g ages) acquire(ctx context.Context, a address) (release func(outcome)) {
	permit, open := g.breaker.allow(a.base)
	if open != nil {
		return nil
	}
	done, err := g.limiter.acquire(ctx, a.base)
	if err != nil {
		permit.report(outcome{})
		return nil
	}
	if permit.withdrawn() != nil {
		done()
		permit.report(outcome{})
		return nil
	}
	return func(o outcome) {
		done()
		permit.report(o)
	}
}

// tryAge reads the topic with the age. It is not done when the storage behind the admin URL hangs.
func (s *Source) tryAge(
	ctx context.Context, a address, count int, detail backlog.Detail,
) (sample backlog.TopicSample, done bool, err error) {
	release := s.ages.acquire(ctx, a)
	if release == nil { // why does not matter
		return backlog.TopicSample{}, false, nil
	}
	sample, err = s.statsOnce(ctx, a, count, detail)
	switch {
	case err == nil:
		release(outcome{kind: answered})
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		release(outcome{kind: failed})
	default:
		release(outcome{})
	}
	done = err == nil || ctx.Err() != nil || !withoutAge(err)
	return sample, done, err
}

// withoutAge says that the call may succeed when it does not ask for the age.
func withoutAge(err error) bool {
	return errors.Is(err, errServerError) || errors.Is(err, context.DeadlineExceeded)
}

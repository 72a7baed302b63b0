// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// newStorageGate returns what stands before looks at ages, which brokers read from their storage. While that hangs,
// each look holds a connection until it is given up: they may have half of them, and after some in vain one look at a
// time tries it, as with hosts. A fetch whose look is held back has everything but the age.
func newStorageGate(config Config) *gate {
	unobserved := prometheus.ObserverFunc(func(float64) {})
	return newGate(max(1, config.MaxConnsPerHost/2), config.MaxRequestsPerSecondPerHost, unobserved)
}

// look reads the topic with the age. It is not done when the storage behind the admin URL hangs.
func (s *Source) look(ctx context.Context, a address, count int, detail backlog.Detail) (sample backlog.TopicSample,
	done bool, err error,
) {
	pass, _, _ := s.storage.enter(ctx, a.base) // why not does not matter
	if pass == nil {
		return backlog.TopicSample{}, false, nil
	}
	sample, err = s.statsOnce(ctx, a, count, detail)
	switch {
	case err == nil:
		pass.leave(verdict{kind: hostAnswered})
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		pass.leave(verdict{kind: hostFailed})
	default:
		pass.leave(verdict{})
	}
	done = err == nil || ctx.Err() != nil || !withoutAge(err)
	return sample, done, err
}

// withoutAge says that the call may succeed when it does not ask for the age.
func withoutAge(err error) bool {
	return errors.Is(err, errServerError) || errors.Is(err, context.DeadlineExceeded)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrLeaseExpired means that a former leader must stop writing: by its own clock another replica may lead by now. The
// leader election notices only when it fails to renew the Lease, up to --lease-renew-deadline after the pause.
var ErrLeaseExpired = errors.New("the Lease expired")

// Fence stops the writes of a process that was paused for longer than its Lease. It is safe for concurrent use.
type Fence struct {
	leases   string
	duration time.Duration
	// renewedAt is when the last renewal of the Lease was sent; nil before the process led.
	renewedAt atomic.Pointer[time.Time]
}

// NewFence returns the fence of the leader election's Lease, with its duration.
func NewFence(lease types.NamespacedName, duration time.Duration) *Fence {
	return &Fence{
		leases:   "/apis/coordination.k8s.io/v1/namespaces/" + lease.Namespace + "/leases",
		duration: duration,
	}
}

// Held fails after the Lease has expired. Before a process has led, its writes need no Lease.
func (f *Fence) Held() error {
	last := f.renewedAt.Load()
	if last == nil {
		return nil
	}
	if age := time.Since(*last); age >= f.duration {
		return fmt.Errorf("%w: it was renewed %s ago and lasts for %s, so another replica may lead", ErrLeaseExpired,
			age.Truncate(time.Second), f.duration)
	}
	return nil
}

// Watch returns an error as soon as the Lease has expired.
func (f *Fence) Watch(ctx context.Context) error {
	const every = time.Second // checks at once after a pause
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := f.Held(); err != nil {
				return err
			}
		}
	}
}

// Transport sends no writes to the API server after the Lease has expired.
func (f *Fence) Transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return next.RoundTrip(r)
		}
		if err := f.Held(); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		sent := time.Now()
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode < http.StatusMultipleChoices && strings.HasPrefix(r.URL.Path, f.leases) {
			f.renewedAt.Store(&sent)
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

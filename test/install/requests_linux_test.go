// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// requests are the outcomes of requests to one path.
type requests struct {
	made, failed int
	// silence is the longest time between two responses, and problem the last failure.
	silence time.Duration
	problem error
	// after is when the last failure was, since the first request.
	after time.Duration
}

func (r requests) String() string {
	return fmt.Sprintf("%d requests, %d failed, %s without a response at most, last failure after %s: %v", r.made,
		r.failed, r.silence.Round(time.Millisecond), r.after.Round(time.Millisecond), r.problem)
}

// request makes requests to the path, one after another, until stop is called or the test ends. The API server may see
// an APIService as available later than the test does, so they begin once one succeeds.
func (s *scene) request(t *testing.T, path string) (stop func() requests) {
	t.Helper()
	const often, patience = 20 * time.Millisecond, 10 * time.Second
	get := func(ctx context.Context) error {
		return s.client.Discovery().RESTClient().Get().AbsPath(path).Timeout(patience).Do(ctx).Error()
	}
	s.Await(t, "a response for "+path, func(ctx context.Context) (bool, string, error) {
		err := get(ctx)
		return err == nil, "", err
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan requests, 1)
	go func() {
		var r requests
		tick := time.NewTicker(often)
		defer tick.Stop()
		began := time.Now()
		answered := began
		for ctx.Err() == nil {
			err := get(t.Context())
			r.made++
			r.silence = max(r.silence, time.Since(answered))
			if err == nil {
				answered = time.Now()
			} else {
				r.failed, r.problem, r.after = r.failed+1, err, time.Since(began)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		done <- r
	}()
	t.Cleanup(cancel)
	return func() requests {
		cancel()
		r := <-done
		t.Log(r)
		return r
	}
}

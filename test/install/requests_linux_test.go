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
}

func (r requests) String() string {
	return fmt.Sprintf("%d requests, %d failed, %s without an answer at most: %v", r.made, r.failed,
		r.silence.Round(time.Millisecond), r.problem)
}

// request makes requests to the path, one after another, until stop is called or the test ends.
func (s *scene) request(t *testing.T, path string) (stop func() requests) {
	t.Helper()
	const often, patience = 20 * time.Millisecond, 10 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan requests, 1)
	go func() {
		var r requests
		tick := time.NewTicker(often)
		defer tick.Stop()
		answered := time.Now()
		for ctx.Err() == nil {
			err := s.client.Discovery().RESTClient().Get().AbsPath(path).Timeout(patience).Do(t.Context()).Error()
			r.made++
			r.silence = max(r.silence, time.Since(answered))
			if err == nil {
				answered = time.Now()
			} else {
				r.failed, r.problem = r.failed+1, err
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

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// WaitLimit bounds a wait whose context has no deadline: the slowest condition on a busy machine, the aggregator's
// back-off after an outage, takes 30 s.
const WaitLimit = 5 * time.Minute

// Condition is what is waited for. detail and err are why it does not hold yet.
type Condition = func(ctx context.Context) (holds bool, detail string, err error)

// WaitFor calls the condition at once and then at the interval until it holds. An error is not the end: a call fails
// while its server starts or stalls. The error after the end of ctx, or after 5 minutes without a deadline, has the
// last detail and error. what completes "waiting for ...".
func WaitFor(ctx context.Context, what string, every time.Duration, holds Condition) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, WaitLimit)
		defer cancel()
	}
	const never = "never answered"
	start, last := time.Now(), never
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		is, detail, err := holds(ctx)
		if is && err == nil {
			return nil
		}
		if err != nil {
			detail = strings.TrimPrefix(detail+": "+err.Error(), ": ")
		}
		if ctx.Err() == nil || last == never { // else the last call was interrupted, and the one before says more
			last = strings.TrimSpace(detail)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w after %s: %s", what, context.Cause(ctx),
				time.Since(start).Round(time.Millisecond), last)
		case <-ticker.C:
		}
	}
}

// WaitReady is WaitFor a process to be ready, which ends with the process. The error has its last lines.
func WaitReady(ctx context.Context, p *proc.Process, ready Condition) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	err := WaitFor(ctx, p.Name()+" to be ready", readyPoll, func(ctx context.Context) (bool, string, error) {
		select {
		case <-p.Done():
			end(errors.Join(errEnded, p.Err()))
		default:
		}
		return ready(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w\nthe last lines of %s:\n%s", err, p.Name(), p.LogTail(logLines))
	}
	return nil
}

// Program is a program that a test may restart.
type Program struct {
	*proc.Program

	// Ready is when it works.
	Ready Condition
}

// Restart starts the process, in place of a running one, and returns when it works. After an error it does not run.
func (p Program) Restart(ctx context.Context) error {
	p.Kill()
	err := p.Launch()
	if err == nil {
		err = WaitReady(ctx, p.Process(), p.Ready)
	}
	if err != nil {
		p.Kill()
	}
	return err
}

var errEnded = errors.New("the process has ended")

// Answers reports whether a URL responds with 200, and its response.
func Answers(ctx context.Context, c *http.Client, url string) (is bool, response string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, "", err
	}
	answer, err := c.Do(request)
	if err != nil {
		return false, "", err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	return answer.StatusCode == http.StatusOK, answer.Status + ": " + string(body), errors.Join(err, answer.Body.Close())
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Part is started at most once. Its zero value is not usable: New makes one.
type Part[T any] struct {
	what  string
	start func(ctx context.Context) (T, error)
	stop  func(T) error

	// lifetime is that of the test process, set by Main before the first test.
	lifetime context.Context //nolint:containedctx // a test starts the part, which outlives that test

	// mu guards the rest.
	mu      sync.Mutex
	started bool
	value   T
	err     error
}

// New describes a part: what completes "needs ..." for tests that are skipped with -short, and stop ends what start
// returned without an error.
func New[T any](what string, start func(ctx context.Context) (T, error), stop func(T) error) *Part[T] {
	return &Part[T]{what: what, start: start, stop: stop}
}

// Need returns the part, started if this test is the first that needs it. It skips the test with -short.
func (p *Part[T]) Need(t testing.TB) T {
	t.Helper()
	if testing.Short() {
		t.Skip("needs " + p.what)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		p.started = true
		p.value, p.err = p.begin()
	}
	require.NoError(t, p.err, "starting %s", p.what)
	return p.value
}

func (p *Part[T]) begin() (value T, err error) {
	if p.lifetime == nil {
		return value, errors.New("TestMain must call shared.Main with this part")
	}
	return p.start(p.lifetime)
}

func (p *Part[T]) open(lifetime context.Context) { p.lifetime = lifetime }

func (p *Part[T]) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started || p.err != nil {
		return
	}
	if err := p.stop(p.value); err != nil {
		fmt.Fprintf(os.Stderr, "stopping %s: %v\n", p.what, err)
	}
}

// closer is any Part.
type closer interface {
	open(lifetime context.Context)
	close()
}

// Main is the body of a TestMain: it runs the tests, ends the parts, the last one first, and exits.
func Main(m *testing.M, parts ...closer) { MainAfter(m, nil, parts...) }

// MainAfter is Main for tests that need something built, which takes longer than tests may. With -short it builds
// nothing.
func MainAfter(m *testing.M, build func(ctx context.Context) error, parts ...closer) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	os.Exit(run(m, build, parts))
}

// runner is a *testing.M.
type runner interface{ Run() int }

func run(m runner, build func(ctx context.Context) error, parts []closer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if build != nil && !testing.Short() {
		if err := build(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for _, part := range parts {
		part.open(ctx)
		defer part.close()
	}
	return m.Run()
}

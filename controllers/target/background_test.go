// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// started runs requests until stop, which waits for their end.
func started(t *testing.T, background *Background) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var ends sync.WaitGroup
	ends.Go(func() { require.NoError(t, background.Start(ctx)) })
	return func() {
		cancel()
		ends.Wait()
	}
}

// withBackground are targets of a worker whose requests wait until the Background is started.
func withBackground(t *testing.T, worker Worker) (*Background, *Targets) {
	t.Helper()
	background := NewBackground()
	return background, newTestTargets(t, nil, func(c *Config) {
		c.Worker, c.Background, c.Now = worker, background, time.Now
		c.Consumers = func(backlog.Subscription) (int, error) { return 3, nil }
	})
}

// A neighbour has 200 functions on a worker that takes 2 s for an answer, and another neighbour as many on a worker
// that never answers. A function of the slow worker in another namespace, and one of a fast worker, are read at once.
func TestNamespacesTakeTurnsAtAFunctionWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		background := NewBackground()
		stop := started(t, background)
		began := time.Now()
		took := map[string]time.Duration{}
		var mu sync.Mutex
		request := func(name string, answers time.Duration) func(context.Context) {
			return func(ctx context.Context) {
				select {
				case <-ctx.Done():
				case <-time.After(answers):
				}
				mu.Lock()
				defer mu.Unlock()
				took[name] = time.Since(began)
			}
		}
		of := func(address, name string) purpose {
			return purpose{component: function.Component{Cluster: fixture.Cluster(), WorkerURL: address, Name: name}}
		}
		for i := range 200 {
			name := fmt.Sprint(i)
			background.run(t.Context(), "neighbour", of("http://slow", name), request("slow"+name, 2*time.Second))
			background.run(t.Context(), "other", of("http://hung", name), request("hung"+name, lookupTimeout))
			background.run(t.Context(), "neighbour", of("http://slow", name), request("twice"+name, 0))
		}
		background.run(t.Context(), "victim", of("http://slow", "victim"), request("victim", 2*time.Second))
		background.run(t.Context(), "victim", of("http://fast", "victim"), request("fast", 0))
		time.Sleep(103 * time.Second)
		stop()
		require.LessOrEqual(t, took["victim"], 4*time.Second)
		require.Zero(t, took["fast"])
		require.Equal(t, 102*time.Second, took["slow199"], "four at a time")
		require.NotContains(t, took, "twice0", "one request for a component at a time")
	})
}

func TestNamespacesTakeTurnsWithoutAFunctionWorker(t *testing.T) {
	t.Parallel()
	background := NewBackground()
	var taken []string
	add := func(namespace string, numbers ...int) {
		for _, number := range numbers {
			name := fmt.Sprint(namespace, number)
			background.Add(namespace, "", func(context.Context) { taken = append(taken, name) })
		}
	}
	add("neighbour", 0, 1, 2)
	add("victim", 0, 1)
	for request := background.next(t.Context()); request != nil; request = background.next(t.Context()) {
		request(t.Context())
	}
	require.Equal(t, []string{"neighbour0", "victim0", "neighbour1", "victim1", "neighbour2"}, taken)
}

func TestWhatNeedsNoFunctionWorkerWaitsForNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		background := NewBackground()
		defer started(t, background)()
		var atWorkers, atNone atomic.Int32
		add := func(address string, running *atomic.Int32) {
			background.Add("victim", address, func(ctx context.Context) {
				running.Add(1)
				<-ctx.Done()
			})
		}
		add("", &atNone)
		synctest.Wait()
		for i := range allPlaces + 1 {
			add(fmt.Sprint("http://hung-", i), &atWorkers)
		}
		synctest.Wait()
		for range workerPlaces {
			add("", &atNone)
		}
		synctest.Wait()
		require.Equal(t, int32(allPlaces), atWorkers.Load())
		require.Equal(t, int32(workerPlaces), atNone.Load(), "in places of its own")
	})
}

func TestNoPolicyWaitsForAFunctionWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker := fixture.NewWorker()
		background, targets := withBackground(t, worker)
		spec := fixture.WorkerPolicy().Spec
		_, err := targets.Finder.Find(t.Context(), fixture.Namespace, spec)
		require.ErrorIs(t, err, ErrPending)
		require.Empty(t, worker.Components, "nothing was sent")

		stop := started(t, background)
		synctest.Wait()
		found, err := targets.Finder.Find(t.Context(), fixture.Namespace, spec)
		require.NoError(t, err)
		require.Equal(t, int32(3), *found.Replicas)
		stop()

		time.Sleep(workerLookupTTL)
		found, err = targets.Finder.Find(t.Context(), fixture.Namespace, spec)
		require.NoError(t, err, "the last answer stays until the next")
		require.Equal(t, int32(3), *found.Replicas)
	})
}

func TestAnUpdateThatFailsInTheBackgroundIsKnownUntilTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		background, targets := withBackground(t, fixture.NewWorker())
		component := function.Component{Cluster: fixture.Cluster(), Name: "resize"}
		var results []error
		update := func() {
			targets.Workers.Update(t.Context(), fixture.Key(), component, func(context.Context) error {
				return backlog.ErrForbidden
			}, func(err error) { results = append(results, err) })
		}
		update()
		update()
		require.Empty(t, results, "nothing was sent")

		stop := started(t, background)
		synctest.Wait()
		require.ErrorIs(t, targets.Workers.UpdateFailed(component), backlog.ErrForbidden)
		update()
		synctest.Wait()
		require.Len(t, results, 1, "one in an interval")
		time.Sleep(DefaultWorkerUpdateInterval + time.Second)
		require.ErrorIs(t, targets.Workers.UpdateFailed(component), backlog.ErrForbidden)
		update()
		synctest.Wait()
		require.Len(t, results, 2)
		time.Sleep(DefaultWorkerUpdateInterval + updateWaits)
		require.NoError(t, targets.Workers.UpdateFailed(component), "no update was wanted")
		stop()
	})
}

func TestTheStateAfterAnUpdateInTheBackgroundIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker := fixture.NewWorker()
		background, targets := withBackground(t, worker)
		defer started(t, background)()
		find := func() int32 {
			_, _ = targets.Finder.Find(t.Context(), fixture.Namespace, fixture.WorkerPolicy().Spec)
			synctest.Wait()
			found, err := targets.Finder.Find(t.Context(), fixture.Namespace, fixture.WorkerPolicy().Spec)
			require.NoError(t, err)
			return *found.Replicas
		}
		require.Equal(t, int32(3), find())
		component, err := Component(fixture.WorkerPolicy().Spec.PulsarFunctionRef, fixture.Cluster())
		require.NoError(t, err)
		targets.Workers.Update(t.Context(), fixture.Key(), component, func(ctx context.Context) error {
			time.Sleep(time.Second)
			return worker.SetParallelism(ctx, component, 7)
		}, func(err error) { require.NoError(t, err) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		described := worker.Described
		require.Equal(t, int32(7), find(), "without another request")
		require.Equal(t, described, worker.Described)

		worker.Parallelism = 8 // as another worker may answer at first
		time.Sleep(lookupRetryAfter)
		require.Equal(t, int32(8), find(), "a second time soon")
	})
}

// slowReads answers what was so when a request came.
type slowReads struct {
	*fixture.Worker
	takes time.Duration
}

func (w *slowReads) Describe(ctx context.Context, component function.Component) (function.Description, error) {
	description, err := w.Worker.Describe(ctx, component)
	time.Sleep(w.takes)
	return description, err
}

func TestAReadThatBeganBeforeAnUpdateIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker := &slowReads{Worker: fixture.NewWorker()}
		background, targets := withBackground(t, worker)
		defer started(t, background)()
		find := func() (replicas int32) {
			if found, err := targets.Finder.Find(t.Context(), fixture.Namespace, fixture.WorkerPolicy().Spec); err == nil {
				replicas = *found.Replicas
			}
			synctest.Wait()
			return replicas
		}
		find()
		require.Equal(t, int32(3), find())
		component, err := Component(fixture.WorkerPolicy().Spec.PulsarFunctionRef, fixture.Cluster())
		require.NoError(t, err)

		time.Sleep(workerLookupTTL)
		worker.takes = 3 * time.Second
		find()
		worker.takes = 0
		targets.Workers.Update(t.Context(), fixture.Key(), component, func(ctx context.Context) error {
			return worker.SetParallelism(ctx, component, 7)
		}, func(err error) { require.NoError(t, err) })
		synctest.Wait()
		require.Equal(t, int32(7), find())
		time.Sleep(5 * time.Second)
		require.Equal(t, int32(7), find())
	})
}

func TestAnUpdateThatWaitsIsTheLastOneWanted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waits time.Duration
		want  []int
	}{
		"the last number":                    {0, []int{3}},
		"none that is not wanted any longer": {updateWaits, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				background, targets := withBackground(t, fixture.NewWorker())
				var sent []int
				for _, replicas := range []int{20, 3} {
					targets.Workers.Update(t.Context(), fixture.Key(),
						function.Component{Cluster: fixture.Cluster(), Name: "resize"},
						func(context.Context) error {
							sent = append(sent, replicas)
							return nil
						}, func(error) {})
				}
				time.Sleep(test.waits)
				stop := started(t, background)
				synctest.Wait()
				stop()
				require.Equal(t, test.want, sent)
			})
		})
	}
}

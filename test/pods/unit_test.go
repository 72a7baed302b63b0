// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var function = client.ObjectKey{Namespace: "default", Name: "f"}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

// testRunner has a buffer for events that are not read.
func testRunner() *Runner { return newRunner(nil, Config{Grace: 30 * time.Second}) }

// startPod starts a pod that runs containers of the fake.
func startPod(t *testing.T, r *Runner, fake *fakeStarts, name string, uid types.UID) {
	t.Helper()
	id := int(name[len(name)-1] - '0')
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
	}
	r.start(t.Context(), key(name), pod, Workload{
		Of: function, Delay: fake.delay,
		Start: func(context.Context, int32) (Container, error) { return fake.start(id) },
	})
}

// fakeStarts starts containers that run at once unless lazy, and that end only when stopped.
type fakeStarts struct {
	// starting is called before each start, and may reject it; nil accepts all.
	starting func() error
	lazy     bool
	// delay is that of the workload.
	delay time.Duration
	// stopTime is the duration of a graceful end.
	stopTime time.Duration

	mu      sync.Mutex // guards started
	started []*fakeContainer
}

func (f *fakeStarts) start(id int) (Container, error) {
	if f.starting != nil {
		if err := f.starting(); err != nil {
			return nil, err
		}
	}
	c := &fakeContainer{id: id, stopTime: f.stopTime, ready: make(chan struct{}), done: make(chan struct{})}
	if !f.lazy {
		close(c.ready)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, c)
	return c, nil
}

// all returns all containers in the order of their starts.
func (f *fakeStarts) all() []*fakeContainer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// alive returns the ids of containers that have not ended.
func (f *fakeStarts) alive() (ids []int) {
	for _, c := range f.all() {
		select {
		case <-c.done:
		default:
			ids = append(ids, c.id)
		}
	}
	return ids
}

type fakeContainer struct {
	id          int
	stopTime    time.Duration
	ready, done chan struct{}
	killed      bool // set before done is closed
}

func (c *fakeContainer) Ready() <-chan struct{} { return c.ready }
func (c *fakeContainer) Done() <-chan struct{}  { return c.done }
func (c *fakeContainer) MetricsURL() string     { return "" }

func (c *fakeContainer) Stop(ctx context.Context) error {
	select {
	case <-time.After(c.stopTime):
		close(c.done)
		return nil
	case <-ctx.Done():
		c.kill()
		return ctx.Err()
	}
}

func (c *fakeContainer) kill() {
	c.killed = true
	close(c.done)
}

func TestARunnerRunsOneContainerPerPodAndCountsItUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeStarts{stopTime: 2 * time.Second}
		r := testRunner()
		defer r.close()
		begin := time.Now()
		r.Desire(function, 2)
		startPod(t, r, fake, "f-function-0", "a")
		startPod(t, r, fake, "f-function-1", "b")
		startPod(t, r, fake, "f-function-1", "b") // the same pod again
		synctest.Wait()
		require.ElementsMatch(t, []int{0, 1}, fake.alive())
		require.Equal(t, Sample{Time: begin, Desired: 2, Started: 2, Ready: 2}, r.Last(function))

		time.Sleep(10 * time.Second)
		r.stop(key("f-function-1"), r.config.Grace)
		synctest.Wait()
		require.Equal(t, Sample{Time: begin.Add(10 * time.Second), Desired: 2, Started: 2, Ready: 1}, r.Last(function),
			"a replica that finishes its message no longer counts as ready, but it is still paid for")
		time.Sleep(5 * time.Second)
		require.Equal(t, []int{0}, fake.alive())
		require.False(t, fake.all()[1].killed)
		require.Equal(t, Sample{Time: begin.Add(12 * time.Second), Desired: 2, Started: 1, Ready: 1}, r.Last(function))

		r.close()
		require.Empty(t, fake.alive())
		require.Equal(t, Sample{Time: begin.Add(17 * time.Second), Desired: 2}, r.Last(function))
		startPod(t, r, fake, "f-function-2", "c")
		synctest.Wait()
		require.Empty(t, fake.alive(), "a closed runner starts nothing")
	})
}

func TestARunnerRestartsAReplicaThatEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, begun := &fakeStarts{}, time.Now()
		r := testRunner()
		defer r.close()
		startPod(t, r, fake, "f-function-0", "a")
		synctest.Wait()
		fake.all()[0].kill()
		synctest.Wait()
		require.Empty(t, fake.alive())
		found, ok := r.look(key("f-function-0"), "a")
		require.True(t, ok)
		require.Equal(t, state{
			begun: begun, since: time.Now(), ran: true, restarts: 1,
			reason: "CrashLoopBackOff", message: "back-off restarting failed container",
		}, found)
		time.Sleep(defaultBackoff)
		synctest.Wait()
		require.Equal(t, []int{0}, fake.alive())
		found, _ = r.look(key("f-function-0"), "a")
		require.Equal(t, state{
			begun: begun, since: time.Now(), ran: true, running: true, started: true, ready: true, restarts: 1,
		}, found)
		require.Equal(t, Sample{Time: begun, Started: 1}, r.Timeline(function)[2], "a pod that waits for a restart exists")
	})
}

func TestARunnerWaitsLongerAfterEachStartThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, starts := time.Now(), []time.Duration{}
		fake := &fakeStarts{starting: func() error {
			starts = append(starts, time.Since(begin))
			return errors.New("no such topic")
		}}
		r := testRunner()
		startPod(t, r, fake, "f-function-0", "a")
		time.Sleep(62 * time.Second)
		r.close()
		s := time.Second
		require.Equal(t, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 61 * s}, starts)
	})
}

func TestARunnerWaitsForTheDelayOfAPodBeforeEachStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, begun := &fakeStarts{delay: time.Minute}, time.Now()
		r := testRunner()
		defer r.close()
		startPod(t, r, fake, "f-function-0", "a")
		time.Sleep(time.Minute - time.Second)
		require.Empty(t, fake.all())
		require.Equal(t, Sample{Time: begun, Started: 1}, r.Last(function), "a pod in its delay is paid for")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, fake.all(), 1)
		fake.all()[0].kill()
		time.Sleep(defaultBackoff + time.Minute - time.Second)
		require.Len(t, fake.all(), 1)
		r.stop(key("f-function-0"), r.config.Grace)
		time.Sleep(time.Minute)
		require.Len(t, fake.all(), 1, "a pod that is stopped in its delay does not start")
		require.Zero(t, r.Last(function).Started)
	})
}

func TestARunnerStartsAPodOnlyWhenTheReplicaOfItsPredecessorIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeStarts{stopTime: 3 * time.Second}
		r := testRunner()
		defer r.close()
		startPod(t, r, fake, "f-function-0", "a")
		synctest.Wait()
		startPod(t, r, fake, "f-function-0", "b") // the deletion of the former was not seen
		time.Sleep(2 * time.Second)
		require.Len(t, fake.all(), 1)
		_, ok := r.look(key("f-function-0"), "a")
		require.False(t, ok)
		time.Sleep(2 * time.Second)
		require.Len(t, fake.all(), 2)
		require.False(t, fake.all()[0].killed)
		require.Equal(t, []int{0}, fake.alive())
	})
}

func TestARunnerKillsAReplicaThatDoesNotEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeStarts{stopTime: time.Hour}
		r := testRunner()
		startPod(t, r, fake, "f-function-0", "a")
		synctest.Wait()
		begin := time.Now()
		r.StopOf(function)
		r.close()
		require.Equal(t, r.config.Grace, time.Since(begin))
		require.Empty(t, fake.alive())
		require.True(t, fake.all()[0].killed)
	})
}

func TestARunnerDoesNotCallAReplicaReadyThatNeverConsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeStarts{lazy: true}
		r := testRunner()
		startPod(t, r, fake, "f-function-0", "a")
		time.Sleep(time.Minute)
		require.Equal(t, 1, r.Last(function).Started)
		require.Zero(t, r.Last(function).Ready)
		r.close()
		require.Zero(t, r.Last(function).Started)
		require.Zero(t, r.Last(function).Ready)
	})
}

func TestTheHistoryKeepsChangesOnly(t *testing.T) {
	at := time.Unix(1000, 0)
	var h history
	h.note(at, func(s *Sample) { s.Desired = 3 })
	h.note(at.Add(time.Second), func(s *Sample) { s.Desired = 3 })
	h.note(at.Add(2*time.Second), func(s *Sample) { s.Started = 3 })
	h.note(at.Add(4*time.Second), func(s *Sample) { s.Started = 1 })
	require.Equal(t, []Sample{
		{Time: at, Desired: 3},
		{Time: at.Add(2 * time.Second), Desired: 3, Started: 3},
		{Time: at.Add(4 * time.Second), Desired: 3, Started: 1},
	}, h.samples)
}

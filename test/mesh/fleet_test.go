// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

var function = client.ObjectKey{Namespace: "default", Name: "f"}

func pod(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

// testFleet has a buffer for events that are not read.
func testFleet(runner replica.Runner) *fleet {
	return newFleet(Config{Runner: runner, Log: logr.Discard()}, make(chan event.GenericEvent, eventBuffer))
}

func startPod(t *testing.T, f *fleet, name string, uid types.UID, id int) {
	t.Helper()
	f.start(t.Context(), pod(name), function, uid, replica.Instance{Name: "f", ID: id})
}

func TestFleetRunsOneReplicaPerPodAndAccountsForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{stopTime: 2 * time.Second}
		f := testFleet(runner)
		defer f.close()
		begin := time.Now()
		f.desire(function, 2)
		startPod(t, f, "f-function-0", "a", 0)
		startPod(t, f, "f-function-1", "b", 1)
		startPod(t, f, "f-function-1", "b", 1) // the same pod again
		synctest.Wait()
		require.ElementsMatch(t, []int{0, 1}, runner.alive("f"))
		require.Equal(t, Sample{Time: begin, Desired: 2, Started: 2, Ready: 2}, f.last(function))

		time.Sleep(10 * time.Second)
		f.stop(pod("f-function-1"))
		synctest.Wait()
		require.Equal(t, Sample{Time: begin.Add(10 * time.Second), Desired: 2, Started: 2, Ready: 1}, f.last(function),
			"a replica that finishes its message no longer counts as ready, but it is still paid for")
		time.Sleep(5 * time.Second)
		require.Equal(t, []int{0}, runner.alive("f"))
		for _, r := range runner.of("f") {
			require.Equal(t, r.in.ID == 1, r.gracefully())
		}
		require.Equal(t, (15+12)*time.Second, f.replicaTime(function, time.Now()))

		f.close()
		require.Empty(t, runner.alive("f"))
		require.Equal(t, (17+12)*time.Second, f.replicaTime(function, time.Now()))
		startPod(t, f, "f-function-2", "c", 2)
		synctest.Wait()
		require.Empty(t, runner.alive("f"), "a closed fleet starts nothing")
	})
}

func TestFleetRestartsAReplicaThatEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{}
		f := testFleet(runner)
		defer f.close()
		startPod(t, f, "f-function-0", "a", 0)
		synctest.Wait()
		require.NoError(t, runner.of("f")[0].Kill())
		synctest.Wait()
		require.Empty(t, runner.alive("f"))
		found, ok := f.look(pod("f-function-0"), "a")
		require.True(t, ok)
		require.Equal(t, state{since: time.Now(), restarts: 1}, found)
		time.Sleep(defaultBackoff)
		synctest.Wait()
		require.Equal(t, []int{0}, runner.alive("f"))
		found, _ = f.look(pod("f-function-0"), "a")
		require.Equal(t, state{ready: true, since: time.Now(), restarts: 1}, found)
		require.Equal(t, defaultBackoff, f.replicaTime(function, time.Now()), "a pod that waits for a restart exists")
	})
}

func TestFleetWaitsLongerAfterEachStartThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, starts := time.Now(), []time.Duration{}
		runner := &fakeRunner{starting: func(replica.Instance) error {
			starts = append(starts, time.Since(begin))
			return errors.New("no such topic")
		}}
		f := testFleet(runner)
		startPod(t, f, "f-function-0", "a", 0)
		time.Sleep(62 * time.Second)
		f.close()
		s := time.Second
		require.Equal(t, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 61 * s}, starts)
	})
}

func TestFleetStartsAPodOnlyWhenTheReplicaOfItsPredecessorIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{stopTime: 3 * time.Second}
		f := testFleet(runner)
		defer f.close()
		startPod(t, f, "f-function-0", "a", 0)
		synctest.Wait()
		startPod(t, f, "f-function-0", "b", 0) // the deletion of the former was not seen
		time.Sleep(2 * time.Second)
		require.Len(t, runner.of("f"), 1)
		_, ok := f.look(pod("f-function-0"), "a")
		require.False(t, ok)
		time.Sleep(2 * time.Second)
		require.Len(t, runner.of("f"), 2)
		require.True(t, runner.of("f")[0].gracefully())
		require.Equal(t, []int{0}, runner.alive("f"))
	})
}

func TestFleetKillsAReplicaThatDoesNotEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{stopTime: time.Hour}
		f := testFleet(runner)
		startPod(t, f, "f-function-0", "a", 0)
		synctest.Wait()
		begin := time.Now()
		f.stopFunction(function)
		f.close()
		require.Equal(t, f.grace, time.Since(begin))
		require.Empty(t, runner.alive("f"))
		require.False(t, runner.of("f")[0].gracefully())
	})
}

func TestFleetDoesNotCallAReplicaReadyThatNeverConsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{lazy: true}
		f := testFleet(runner)
		startPod(t, f, "f-function-0", "a", 0)
		time.Sleep(time.Minute)
		require.Equal(t, 1, f.last(function).Started)
		require.Zero(t, f.last(function).Ready)
		f.close()
		require.Zero(t, f.last(function).Started)
		require.Zero(t, f.last(function).Ready)
	})
}

func TestLedgerKeepsChangesOnly(t *testing.T) {
	at := time.Unix(1000, 0)
	var l ledger
	require.Zero(t, l.replicaTime(at), "nothing ran before the first sample")
	l.note(at, func(s *Sample) { s.Desired = 3 })
	l.note(at.Add(time.Second), func(s *Sample) { s.Desired = 3 })
	l.note(at.Add(2*time.Second), func(s *Sample) { s.Started = 3 })
	l.note(at.Add(4*time.Second), func(s *Sample) { s.Started = 1 })
	require.Equal(t, []Sample{
		{Time: at, Desired: 3},
		{Time: at.Add(2 * time.Second), Desired: 3, Started: 3},
		{Time: at.Add(4 * time.Second), Desired: 3, Started: 1},
	}, l.timeline())
	require.Equal(t, (2*3+6)*time.Second, l.replicaTime(at.Add(10*time.Second)))
}

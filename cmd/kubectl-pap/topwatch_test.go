// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func measuredAfter(d time.Duration) func(*v1alpha1.AutoscalingPolicy) {
	return func(p *v1alpha1.AutoscalingPolicy) {
		p.Status.Signals.MeasuredAt = metav1.NewTime(fixture.Noon().Add(d))
	}
}

func TestAScreenHasTheTrendOfTheWaits(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, table: topTable{namespaces: true}}
	for i, seconds := range []int{0, 5, 12, 12, 30, 90, 12, 5, 1} {
		at, wait := measuredAfter(time.Duration(i)*time.Minute), setWait(time.Duration(seconds)*time.Second)
		for range 2 { // one measurement counts once
			require.NoError(t, s.draw([]v1alpha1.AutoscalingPolicy{
				scaledPolicy("resize", wait, at), scaledPolicy("audit", paused),
			}, fixture.Noon()))
		}
	}
	drawn := strings.Split(out.String(), "12:00:00  ")
	require.Equal(t, `2 policies: 0 late, 0 unknown, 1 in time, 1 paused
NAME          WAIT/OBJ  TREND     BACKLOG  IN/S  OUT/S  REPLICAS  WHY
media/resize  1s/30s    ▂▃▃██▃▂▁  15.1k    412   61.3   19/19/11  
media/audit   -/30s               -        -     -      -/3/-     Paused
`, drawn[len(drawn)-1])
	require.NoError(t, s.draw(nil, fixture.Noon()))
	require.Empty(t, s.trends, "deleted policies are forgotten")
}

func TestAScreenFitsATerminal(t *testing.T) {
	s := &screen{table: topTable{namespaces: true}}
	rows := topRows(fleetPolicies())
	s.remember(rows)
	text := s.text(rows, 80, 8, fixture.Noon())
	require.Equal(t, 7, strings.Count(text, "\n"), text)
	require.Contains(t, text, "6 policies: 2 late, 1 unknown, 2 in time, 1 paused\n")
	require.True(t, strings.HasSuffix(text, "and 2 more\n"), text)
}

func TestAWideScreenIsCutToATerminal(t *testing.T) {
	const width = 80
	text := (&screen{table: topTable{wide: true}}).text(topRows(fleetPolicies()), width, 8, fixture.Noon())
	height := 0
	for line := range strings.Lines(text) {
		height += (utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) + width - 1) / width
	}
	require.LessOrEqual(t, height, 8, text)
}

// drawings are what was written, in order.
type drawings chan string

func (d drawings) Write(text []byte) (int, error) {
	d <- string(text)
	return len(text), nil
}

func TestAScreenIsRedrawnOnChangesAndEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		changed, failures := make(chan struct{}, 1), make(chan error, 1)
		drawn := make(drawings, 10)
		s := &screen{out: drawn}
		ended := make(chan error)
		go func() {
			ended <- s.redraw(ctx, changed, failures, func(context.Context) ([]v1alpha1.AutoscalingPolicy, error) {
				return nil, nil
			})
		}()
		begin := time.Now()
		synctest.Wait()
		changed <- struct{}{}
		synctest.Wait()
		changed <- struct{}{} // is drawn together with the first
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Len(t, drawn, 3, "at once, and after each change")
		failures <- errors.New("refused")
		time.Sleep(redrawAfter)
		synctest.Wait()
		require.Len(t, drawn, 4)
		for range 3 {
			<-drawn
		}
		require.Contains(t, <-drawn, "the watch is repeated after an error: refused")
		time.Sleep(redrawAtLeast + redrawAfter)
		synctest.Wait()
		require.Len(t, drawn, 1, "also without a change")
		require.Less(t, time.Since(begin), 20*time.Second)
		before := time.Now()
		interrupt()
		require.NoError(t, <-ended)
		require.Zero(t, time.Since(before))
	})
}

func TestAnOldFailureOfTheWatchIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		failures, drawn, ended := make(chan error, 1), make(drawings, 100), make(chan error)
		s := &screen{out: drawn}
		go func() {
			none := func(context.Context) ([]v1alpha1.AutoscalingPolicy, error) { return nil, nil }
			ended <- s.redraw(ctx, nil, failures, none)
		}()
		last := func() (text string) {
			synctest.Wait()
			for len(drawn) > 0 {
				text = <-drawn
			}
			return text
		}
		failures <- errors.New("refused")
		time.Sleep(time.Minute)
		require.Contains(t, last(), "refused", "the watch may be tried again later")
		time.Sleep(2 * failedFor)
		require.NotContains(t, last(), "refused")
		interrupt()
		require.NoError(t, <-ended)
	})
}

func TestAScreenEndsWithTheErrorOfItsOutput(t *testing.T) {
	in, out := io.Pipe()
	require.NoError(t, in.Close())
	s := &screen{out: out}
	err := s.redraw(t.Context(), nil, nil, func(context.Context) ([]v1alpha1.AutoscalingPolicy, error) { return nil, nil })
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestTopWatchesPolicies(t *testing.T) {
	server := newAPIServer(t, scaledPolicy("resize"))
	in, out := io.Pipe()
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: io.Discard})
	root.SetArgs([]string{"top", "-n", "media", "--watch", "--server", server.url})
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(root.ExecuteContext(ctx), out.Close()) }()
	lines := bufio.NewScanner(in)
	await := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		require.Fail(t, "the output ended", "before %q", text)
	}
	await("22s/30s")
	changed := scaledPolicy("resize", setWait(25*time.Second), measuredAfter(time.Minute))
	changed.ResourceVersion = "2"
	server.changes <- metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Object: &changed}}
	await("25s/30s   ▆▆")
	interrupt()
	for lines.Scan() {
		continue // what is drawn meanwhile
	}
	require.NoError(t, <-ended)
}

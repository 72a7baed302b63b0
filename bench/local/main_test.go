// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestFlagsBecomeTheCluster(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want stage.Config
	}{
		"as it ships": {nil, stage.Config{HPASyncPeriod: 15 * time.Second}},
		"all flags": {
			[]string{"-keda", "-adapter-flag=--poll-interval=2s", "-adapter-flag=--rate-window=4s", "-hpa-sync=5s", "-outages"},
			stage.Config{
				HPASyncPeriod: 5 * time.Second, KEDA: &keda.Config{},
				AdapterFlags: []string{"--poll-interval=2s", "--rate-window=4s"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Guests, test.want.Progress = true, io.Discard
			config, outages, err := parse(test.args, io.Discard)
			require.NoError(t, err)
			require.Equal(t, test.want, config)
			require.Equal(t, slices.Contains(test.args, "-outages"), outages)
		})
	}
	_, _, err := parse([]string{"stray"}, io.Discard)
	require.ErrorContains(t, err, `argument "stray" is not a flag`)
}

func TestAnOutageLastsFromBreakToAnswer(t *testing.T) {
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	defer broker.Close()
	var progress bytes.Buffer
	front := newProxy(&progress)
	defer front.close()
	ask := func() (status int) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.server.URL+"/admin", http.NoBody)
		if err != nil {
			return 0
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		_ = response.Body.Close() // it is empty
		return response.StatusCode
	}
	require.NoError(t, front.serve(broker.URL))
	require.Equal(t, http.StatusTeapot, ask())
	front.obey("break")
	front.obey("break") // of the next contender
	answered := make(chan int, 1)
	go func() { answered <- ask() }()
	require.Eventually(t, func() bool { return front.faults.Told() == 1 }, time.Minute, time.Millisecond)
	require.Empty(t, answered)
	front.obey("answer")
	require.Equal(t, http.StatusTeapot, <-answered)
	require.Equal(t, http.StatusTeapot, ask())
	front.obey("answer")
	require.Equal(t, 2, strings.Count(progress.String(), "\n"), "one outage is told once")
	(*proxy)(nil).obey("break") // without outages
}

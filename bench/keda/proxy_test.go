// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask asks for an address and returns the status and the body.
func ask(ctx context.Context, address string) (answered string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	return http.StatusText(answer.StatusCode) + " " + string(text), err
}

func startProxy(t *testing.T, broker http.HandlerFunc) *proxy {
	t.Helper()
	server := httptest.NewServer(broker)
	t.Cleanup(server.Close)
	p, err := newProxy(t.Context())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	require.NoError(t, p.Aim(server.URL))
	return p
}

func TestAProxyCountsRequestsAndTheBytesOfAnswers(t *testing.T) {
	p := startProxy(t,
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path+"?"+r.URL.RawQuery) })
	got, err := ask(t.Context(), p.URL+"/admin/v2/persistent/a/b/c%2Fd/stats?x=y")
	require.NoError(t, err)
	require.Equal(t, "OK /admin/v2/persistent/a/b/c/d/stats?x=y", got)
	first := p.Traffic()
	require.Equal(t, traffic{Requests: 1, Bytes: int64(len("/admin/v2/persistent/a/b/c/d/stats?x=y"))}, first)
	_, err = ask(t.Context(), p.URL+"/a")
	require.NoError(t, err)
	require.Equal(t, traffic{Requests: 1, Bytes: 3}, p.Traffic().since(first))
}

func TestAProxyCountsAnAnswerAsItWasSent(t *testing.T) {
	long := strings.Repeat("backlog ", 1000)
	p := startProxy(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = io.WriteString(packed, long)
		_ = packed.Close()
	})
	got, err := ask(t.Context(), p.URL+"/stats")
	require.NoError(t, err)
	require.Equal(t, "OK "+long, got, "the client unpacks what it asked for")
	require.Less(t, p.Traffic().Bytes, int64(len(long)/10))
}

func TestAHungProxyDoesNotAnswerUntilItResumes(t *testing.T) {
	p := startProxy(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "back") })
	p.Hang()
	p.Hang()
	type outcome struct {
		text string
		err  error
	}
	answered := make(chan outcome, 1)
	go func() {
		got, err := ask(t.Context(), p.URL)
		answered <- outcome{got, err}
	}()
	for p.Traffic().Requests == 0 {
		runtime.Gosched()
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err := ask(gone, p.URL)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, answered)
	p.Resume()
	p.Resume()
	require.Equal(t, outcome{text: "OK back"}, <-answered)
}

func TestAProxyPassesABrokerThatIsGoneOnAsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	p, err := newProxy(t.Context())
	require.NoError(t, err)
	t.Cleanup(p.Close)
	for _, adminURL := range []string{"", server.URL} {
		if adminURL != "" {
			require.NoError(t, p.Aim(adminURL))
		}
		got, err := ask(t.Context(), p.URL)
		require.NoError(t, err)
		require.Equal(t, "Bad Gateway ", got)
	}
	require.ErrorContains(t, p.Aim("http://bad url:x"), "reading the admin URL")
}

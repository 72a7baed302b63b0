// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ask returns the status and the body at an address.
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

func TestAProxyPassesRequestsOn(t *testing.T) {
	p := startProxy(t,
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path+"?"+r.URL.RawQuery) })
	got, err := ask(t.Context(), p.URL+"/admin/v2/persistent/a/b/c%2Fd/stats?x=y")
	require.NoError(t, err)
	require.Equal(t, "OK /admin/v2/persistent/a/b/c/d/stats?x=y", got)
}

func TestAHungProxyDoesNotAnswerUntilItResumes(t *testing.T) {
	p := startProxy(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "back") })
	p.Hang()
	p.Hang()
	type outcome struct {
		text string
		err  error
	}
	answered, sent := make(chan outcome, 1), make(chan struct{})
	go func() {
		trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }}
		got, err := ask(httptrace.WithClientTrace(t.Context(), trace), p.URL)
		answered <- outcome{got, err}
	}()
	<-sent
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := ask(limited, p.URL)
	require.ErrorIs(t, err, context.DeadlineExceeded)
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

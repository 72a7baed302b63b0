// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/faults"
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

// proxied returns a proxy of the broker, and its address.
func proxied(t *testing.T, broker *httptest.Server) (p *faults.Proxy, address string) {
	t.Helper()
	t.Cleanup(broker.Close)
	p, err := faults.NewProxy(broker.URL)
	require.NoError(t, err)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, server.URL
}

func TestAProxyPassesRequestsOn(t *testing.T) {
	_, address := proxied(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path+"?"+r.URL.RawQuery)
	})))
	got, err := ask(t.Context(), address+"/admin/v2/persistent/a/b/c%2Fd/stats?x=y")
	require.NoError(t, err)
	require.Equal(t, "OK /admin/v2/persistent/a/b/c/d/stats?x=y", got)
}

func TestAHungProxyDoesNotAnswerUntilItResumes(t *testing.T) {
	p, address := proxied(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "back")
	})))
	resumed, asked := make(chan struct{}), make(chan struct{})
	first, fault := sync.OnceFunc(func() { close(asked) }), faults.Hangs(resumed)
	fault.On = func(*http.Request) bool { first(); return true }
	p.Falsify(fault, faults.Always)
	type outcome struct {
		text string
		err  error
	}
	answered := make(chan outcome, 1)
	go func() {
		got, err := ask(t.Context(), address)
		answered <- outcome{got, err}
	}()
	<-asked // the proxy has the request, which counts even if a stalled machine passes the next one on too late
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := ask(limited, address)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, answered)
	require.Positive(t, p.Tell())
	close(resumed)
	require.Equal(t, outcome{text: "OK back"}, <-answered)
}

func TestAProxyPassesABrokerThatIsGoneOnAsAnError(t *testing.T) {
	broker := httptest.NewServer(http.NotFoundHandler())
	_, address := proxied(t, broker)
	broker.Close()
	got, err := ask(t.Context(), address)
	require.NoError(t, err)
	require.Equal(t, "Bad Gateway ", got)
	_, err = faults.NewProxy("http://bad url:x")
	require.ErrorContains(t, err, "reading the admin URL")
}

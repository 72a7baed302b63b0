// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/require"
)

// query sends one range query of an hour without delays between retries.
func query(ctx context.Context, server Server) (samples, error) {
	api, err := server.connect()
	if err != nil {
		return nil, err
	}
	q := querier{api: api, from: begin, to: begin.Add(time.Hour), step: time.Minute, wait: time.Nanosecond}
	return q.query(ctx, published+"{}")
}

func TestCredentialsAreSent(t *testing.T) {
	tests := map[string]struct {
		server Server
		want   string
	}{
		"none":                 {Server{}, ""},
		"a bearer token":       {Server{Token: "secret"}, "Bearer secret"},
		"basic authentication": {Server{Username: "u", Password: "p"}, "Basic dTpw"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fake := &fakePrometheus{series: whole()}
			tt.server.URL = serve(t, fake)
			_, err := query(t.Context(), tt.server)
			require.NoError(t, err)
			require.Equal(t, tt.want, fake.headers.Get("Authorization"))
		})
	}
}

func TestCredentialsDoNotFollowARedirect(t *testing.T) {
	reached := false
	other := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other, http.StatusTemporaryRedirect)
	}))
	_, err := query(t.Context(), Server{URL: url, Token: "secret"})
	require.ErrorContains(t, err, "name that as the URL of Prometheus if you trust it")
	require.False(t, reached)
}

func TestTriesAreBounded(t *testing.T) {
	tests := map[string]struct {
		status, fails, requests int
		want                    string
	}{
		"a server that recovers":      {http.StatusBadGateway, 2, 3, ""},
		"a server that stays broken":  {http.StatusBadGateway, 9, 3, "502"},
		"a request that is refused":   {http.StatusUnauthorized, 9, 1, "check the URL and the credentials of Prometheus"},
		"a path without a Prometheus": {http.StatusNotFound, 9, 1, "check the URL"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fake, requests := &fakePrometheus{series: whole()}, 0
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests++; requests <= tt.fails {
					w.WriteHeader(tt.status)
					return
				}
				fake.ServeHTTP(w, r)
			}))
			found, err := query(t.Context(), Server{URL: url})
			require.Equal(t, tt.requests, requests)
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.Len(t, found, 61)
		})
	}
}

func TestHugeResponsesAreRejected(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := strings.Repeat(" ", 1<<20)
		for range maxAnswer>>20 + 2 {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
	}))
	_, err := query(t.Context(), Server{URL: url})
	require.ErrorContains(t, err, "the response is larger than 64 MiB")
}

func TestAnInterruptEndsTheTries(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(http.StatusBadGateway)
	}))
	_, err := query(ctx, Server{URL: url})
	require.ErrorIs(t, err, context.Canceled)
}

// transport responds without a network.
type transport string

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(string(t))),
	}, nil
}

// offline is a querier of an hour with a transport in place of a server.
func offline(answers http.RoundTripper) (querier, error) {
	client, err := api.NewClient(api.Config{Address: "http://prometheus", RoundTripper: answers})
	if err != nil {
		return querier{}, err
	}
	return querier{
		api: v1.NewAPI(client), from: begin, to: begin.Add(time.Hour), step: time.Minute, wait: time.Nanosecond,
	}, nil
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1772409600,"1"]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1e300,"NaN"],[-1,"+Inf"],[0,"-1"]]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[]}}`,
		`{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution"}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{},{}]}}`, `[]`, ``, `{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		q, err := offline(transport(answer))
		require.NoError(t, err)
		c := config("http://prometheus", time.Hour)
		h, err := c.read(t.Context(), q)
		if err != nil {
			return
		}
		require.Positive(t, h.Load.Seconds())
		for _, estimate := range []float64{h.SeenCapacity, h.Load.Rate(0)} {
			require.GreaterOrEqual(t, estimate, 0.0)
		}
	})
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// setting is common to both sides of a measurement.
type setting struct {
	// Topics of Partitions each.
	Topics, Partitions int
	// Busy is how many of 100 topics always have a backlog.
	Busy int
	// Interval between two polls of a topic.
	Interval time.Duration
}

func (s setting) topic(i int) string { return fmt.Sprintf("persistent://public/default/in-%06d", i) }

// waiting spreads the topics with a backlog evenly.
func (s setting) waiting(i int) bool { return i*s.Busy/100 != (i+1)*s.Busy/100 }

// traffic counts what the broker has received and sent since it started.
type traffic struct {
	Requests int64 `json:"requests"`
	// Bytes sent, headers included.
	Bytes int64 `json:"bytes"`
	// Unknown requests, which a contender should not send.
	Unknown int64 `json:"unknown"`
}

// perSecond messages are published to each partition with a backlog, and as many are delivered.
const perSecond = 10

// fakeBroker serves the topics of a setting.
type fakeBroker struct {
	setting  setting
	recipe   *recipe
	began    time.Time
	requests atomic.Int64
	unknown  atomic.Int64
	bytes    atomic.Int64

	// made caches the responses for topics without a backlog, by number, each built at its first request.
	made sync.Map
}

// serveBroker prints its URL and serves until the context ends.
func serveBroker(ctx context.Context, s setting, out io.Writer) error {
	recipe, err := newRecipe(s.Partitions)
	if err != nil {
		return err
	}
	broker := &fakeBroker{setting: s, recipe: recipe, began: time.Now()}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{
		Handler: broker, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(countingListener{listener, &broker.bytes}); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-running.Done()
		return server.Close()
	})
	if _, err := fmt.Fprintln(out, "http://"+listener.Addr().String()); err != nil {
		return fmt.Errorf("telling the URL: %w", err)
	}
	return group.Wait()
}

const topicsPath = "/admin/v2/persistent/public/default/in-"

// ServeHTTP implements http.Handler.
func (b *fakeBroker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/traffic" {
		// the reader will notice
		_ = json.NewEncoder(w).Encode(traffic{Requests: b.requests.Load(), Bytes: b.bytes.Load(), Unknown: b.unknown.Load()})
		return
	}
	b.requests.Add(1)
	rest, found := strings.CutPrefix(r.URL.Path, topicsPath)
	name, call, _ := strings.Cut(rest, "/")
	number, _, isPartition := strings.Cut(name, "-partition-")
	i, err := strconv.Atoi(number)
	if !found || err != nil || i >= b.setting.Topics {
		b.refuse(w)
		return
	}
	if call == "partitions" {
		_, _ = io.WriteString(w, `{"partitions":`+strconv.Itoa(b.setting.Partitions)+`,"deleted":false}`)
		return
	}
	if isPartition && strings.HasPrefix(call, "subscription/"+subscription+"/position/") {
		_, _ = io.WriteString(w, "a message of no batch")
		return
	}
	known, err := b.answers(i)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := known.full
	switch {
	case call == "partitioned-internalStats":
		body = known.entries
	case call != "partitioned-stats":
		b.refuse(w)
		return
	case r.URL.Query().Get("excludeConsumers") == "true":
		body = known.slim
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may be gone
}

func (b *fakeBroker) refuse(w http.ResponseWriter) {
	b.unknown.Add(1)
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"reason":"not a topic of this benchmark"}`)
}

func (b *fakeBroker) answers(i int) (answers, error) {
	if b.setting.waiting(i) {
		return b.recipe.answer(b.setting.topic(i), true, int64(time.Since(b.began).Seconds()*perSecond))
	}
	if known, ok := b.made.Load(i); ok {
		return known.(answers), nil
	}
	made, err := b.recipe.answer(b.setting.topic(i), false, 0)
	if err != nil {
		return answers{}, err
	}
	b.made.Store(i, made)
	return made, nil
}

// countingListener counts what its connections send.
type countingListener struct {
	net.Listener
	bytes *atomic.Int64
}

// Accept implements net.Listener.
func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{conn, l.bytes}, nil
}

type countingConn struct {
	net.Conn
	bytes *atomic.Int64
}

// Write implements net.Conn.
func (c countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// readTraffic requests the traffic of a broker.
func readTraffic(ctx context.Context, url string) (seen traffic, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/traffic", http.NoBody)
	if err != nil {
		return seen, fmt.Errorf("asking for the traffic: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return seen, fmt.Errorf("asking for the traffic: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // read whole below
	if err := json.NewDecoder(response.Body).Decode(&seen); err != nil {
		return seen, fmt.Errorf("reading the traffic: %w", err)
	}
	return seen, nil
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Counts are a broker's counts for one Function's topic.
type Counts struct {
	Published, Done int64
	// Replicas are the consumers.
	Replicas int
}

// Backlog is what is published and not processed.
func (c Counts) Backlog() int64 { return c.Published - c.Done }

// Pulsar serves the topic of each Function like the admin service of Pulsar 4.0, for the requests of the adapter, the
// scaler and KEDA's pulsar scaler. It returns the counts of a Function now, or false for one that does not exist.
type Pulsar func(function string) (Counts, bool)

const topicsPath = "/admin/v2/persistent/public/default/"

// TopicOf is the complete name of a Function's input topic.
func TopicOf(function string) string { return "persistent://public/default/" + InputOf(function) }

// InputOf is its name in public/default.
func InputOf(function string) string { return function + "-in" }

// SubscriptionOf is the name of a Function's subscription.
func SubscriptionOf(function string) string { return "public/default/" + function }

// ServeHTTP implements http.Handler.
func (p Pulsar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	rest, found := strings.CutPrefix(r.URL.Path, topicsPath)
	topic, call, _ := strings.Cut(rest, "/")
	function := strings.TrimSuffix(topic, "-in")
	now, known := p(function)
	if !found || !known {
		refuse(w, "Topic not found")
		return
	}
	var answer any
	switch call {
	case "partitions":
		answer = map[string]any{"partitions": 0, "deleted": false}
	case "stats":
		answer = stats(function, now, r.URL.Query().Get("excludeConsumers") != "true")
	case "internalStats":
		answer = map[string]any{
			"entriesAddedCounter": now.Published, "state": "LedgerOpened", "ledgers": []any{},
			"cursors": map[string]any{},
		}
	default:
		refuse(w, "not a call of this benchmark")
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

func refuse(w http.ResponseWriter, reason string) {
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(map[string]string{"reason": reason}) // as above
}

// stats is a TopicStats with the fields that a decision uses.
func stats(function string, c Counts, full bool) map[string]any {
	const permits = 990
	consumers := []any{}
	for i := range c.Replicas {
		if !full {
			break
		}
		consumers = append(consumers, map[string]any{
			"consumerName": fmt.Sprintf("c%d", i), "availablePermits": permits, "unackedMessages": 0, "avgMessagesPerEntry": 1,
			"metadata": map[string]any{
				"application": "pulsar-function", "id": "public/default/" + function, "instance_id": fmt.Sprint(i),
			},
		})
	}
	return map[string]any{
		"msgInCounter": c.Published, "msgOutCounter": c.Done,
		"subscriptions": map[string]any{SubscriptionOf(function): map[string]any{
			"type": "Shared", "msgBacklog": c.Backlog(), "msgOutCounter": c.Done, "msgDelayed": 0, "unackedMessages": 0,
			"msgInReplay": 0, "blockedSubscriptionOnUnackedMsgs": false, "consumers": consumers,
		}},
	}
}

// Serve serves on a free port until ctx ends, and returns the URL.
func (p Pulsar) Serve(ctx context.Context, group *errgroup.Group) (url string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return "http://" + listener.Addr().String(), nil
}

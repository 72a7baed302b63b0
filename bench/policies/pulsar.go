// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// fakePulsar answers about the topic of each Function as the admin service of Pulsar 4.0 does, as far as the adapter asks.
type fakePulsar struct {
	works map[string]*work
	now   func() time.Time
}

const topicsPath = "/admin/v2/persistent/public/default/"

func topicOf(function string) string { return "persistent://public/default/" + inputOf(function) }

func inputOf(function string) string { return function + "-in" }

// ServeHTTP implements http.Handler.
func (p *fakePulsar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	rest, found := strings.CutPrefix(r.URL.Path, topicsPath)
	topic, call, _ := strings.Cut(rest, "/")
	function := strings.TrimSuffix(topic, "-in")
	one := p.works[function]
	if !found || one == nil {
		refuse(w, "Topic not found")
		return
	}
	now := one.counts(p.now())
	var answer any
	switch call {
	case "partitions":
		answer = map[string]any{"partitions": 0, "deleted": false}
	case "stats":
		answer = stats(function, now, r.URL.Query().Get("excludeConsumers") != "true")
	case "internalStats":
		answer = map[string]any{"entriesAddedCounter": now.published, "state": "LedgerOpened", "ledgers": []any{}, "cursors": map[string]any{}}
	default:
		refuse(w, "not a call of this benchmark")
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that left is its own concern
}

func refuse(w http.ResponseWriter, reason string) {
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(map[string]string{"reason": reason}) // as above
}

// stats is a TopicStats with the fields that a decision may rest on.
func stats(function string, c counts, full bool) map[string]any {
	const permits = 990
	consumers := []any{}
	for i := range c.replicas {
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
		"msgInCounter": c.published, "msgOutCounter": c.done,
		"subscriptions": map[string]any{"public/default/" + function: map[string]any{
			"type": "Shared", "msgBacklog": c.backlog(), "msgOutCounter": c.done, "msgDelayed": 0, "unackedMessages": 0,
			"msgInReplay": 0, "blockedSubscriptionOnUnackedMsgs": false, "consumers": consumers,
		}},
	}
}

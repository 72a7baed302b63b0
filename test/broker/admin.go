// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	// adminTimeout bounds one call, longer than a machine stalls. The slowest is the upload of a component: a busy worker
	// loads and checks its code.
	adminTimeout = time.Minute
	// adminBytes bounds one response; the broker's /metrics is 14 KB per topic.
	adminBytes = 64 << 20
	// maxAttempts bounds how often a call is made that the metadata store ended.
	maxAttempts = 5
	readyCall   = 5 * time.Second
)

// Position is the start of a new subscription.
type Position int

const (
	// Earliest makes the whole topic its backlog.
	Earliest Position = iota
	// Latest makes its backlog empty.
	Latest
)

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
}

// Admin calls the admin API at path, e.g. "/admin/v2/clusters", with body as JSON if there is one, and returns any
// status with its response. An error means that there was no complete response within ctx and a minute.
func (b *Broker) Admin(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return b.send(ctx, method, path, "application/json", body)
}

func (b *Broker) send(
	ctx context.Context, method, path, contentType string, body []byte,
) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, b.AdminURL()+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("making a request for %s: %w", path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	if b.config.Token != "" {
		request.Header.Set("Authorization", "Bearer "+b.config.Token)
		request.Header.Set("X-Pulsar-Auth-Method-Name", "token")
	}
	response, err := b.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("calling the broker: %w", err)
	}
	answer, err = io.ReadAll(io.LimitReader(response.Body, adminBytes+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return 0, nil, fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	if len(answer) > adminBytes {
		return 0, nil, fmt.Errorf("reading the answer to %s %s: more than %d bytes", method, path, adminBytes)
	}
	return response.StatusCode, answer, nil
}

// Demand is Admin for a call that must succeed. A standalone's RocksDB creates no ledger if its number waits a second
// for a lock, as when many topics are created on a slow disk (apache/pulsar#15896): such a call is made again, and what
// it created before it failed is no conflict.
func (b *Broker) Demand(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		status, answer, err := b.Admin(ctx, method, path, body)
		switch {
		case err != nil:
			return nil, err
		case status/100 == 2, attempt > 1 && status == http.StatusConflict:
			return answer, nil
		case attempt == maxAttempts || !bytes.Contains(answer, []byte("Error while using MetaStore")):
			return nil, fmt.Errorf("%s %s answered %d: %s%s", method, path, status, bytes.TrimSpace(answer), b.explain(answer))
		}
	}
}

// CreateTopic creates a persistent topic, partitioned if partitions is positive. name is
// "persistent://tenant/ns/topic", or "topic" in public/default.
func (b *Broker) CreateTopic(ctx context.Context, name string, partitions int) error {
	path, body := topicPath(name), []byte(nil)
	if partitions > 0 {
		path, body = path+"/partitions", strconv.AppendInt(nil, int64(partitions), 10)
	}
	if _, err := b.Demand(ctx, http.MethodPut, path, body); err != nil {
		return fmt.Errorf("creating topic %s: %w", name, err)
	}
	return nil
}

// DeleteTopic deletes a topic, partitioned or not, with its subscriptions, and disconnects its clients.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error {
	path := topicPath(name)
	answer, err := b.Demand(ctx, http.MethodGet, path+"/partitions?checkAllowAutoCreation=false", nil)
	if err != nil {
		return fmt.Errorf("deleting topic %s: %w", name, err)
	}
	var found struct {
		Partitions int `json:"partitions"`
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return fmt.Errorf("deleting topic %s: reading its partitions: %w", name, err)
	}
	if found.Partitions > 0 {
		path += "/partitions"
	}
	if _, err := b.Demand(ctx, http.MethodDelete, path+"?force=true", nil); err != nil {
		return fmt.Errorf("deleting topic %s: %w", name, err)
	}
	return nil
}

// CreateSubscription creates a subscription without a consumer, on every partition of a partitioned topic.
func (b *Broker) CreateSubscription(ctx context.Context, topic, subscription string, position Position) error {
	body := `{"ledgerId":-1,"entryId":-1}`
	if position == Latest {
		body = `{"ledgerId":9223372036854775807,"entryId":9223372036854775807}`
	}
	if _, err := b.Demand(ctx, http.MethodPut, subscriptionPath(topic, subscription), []byte(body)); err != nil {
		return fmt.Errorf("creating subscription %s on %s: %w", subscription, topic, err)
	}
	return nil
}

// DeleteSubscription deletes a subscription with its consumers.
func (b *Broker) DeleteSubscription(ctx context.Context, topic, subscription string) error {
	if _, err := b.Demand(ctx, http.MethodDelete, subscriptionPath(topic, subscription)+"?force=true", nil); err != nil {
		return fmt.Errorf("deleting subscription %s on %s: %w", subscription, topic, err)
	}
	return nil
}

// Unload unloads the topic with all its partitions: counters restart at 0, the backlog stays.
func (b *Broker) Unload(ctx context.Context, topic string) error {
	if _, err := b.Demand(ctx, http.MethodPut, topicPath(topic)+"/unload", nil); err != nil {
		return fmt.Errorf("unloading topic %s: %w", topic, err)
	}
	return nil
}

// TopicName is the full name of a topic: a name without a scheme is in public/default.
func TopicName(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return "persistent://public/default/" + name
}

// topicPath is the admin path of a topic. Local names are escaped twice, as by Pulsar's own clients: the broker decodes
// twice, and its HTTP server rejects a %2F.
func topicPath(name string) string {
	domain, rest, _ := strings.Cut(TopicName(name), "://")
	parts := strings.SplitN(rest, "/", 3)
	parts[len(parts)-1] = twice(parts[len(parts)-1])
	return "/admin/v2/" + domain + "/" + strings.Join(parts, "/")
}

func subscriptionPath(topic, subscription string) string {
	return topicPath(topic) + "/subscription/" + twice(subscription)
}

func twice(name string) string { return url.PathEscape(url.QueryEscape(name)) }

// awaitReady polls until the broker is usable. "brokers/health" is ok before public/default exists, and that exists
// before the worker has a leader; a function created before that is half stored and can never be created again.
func (b *Broker) awaitReady(ctx context.Context, p *proc.Process) error {
	waits := []struct{ path, answer string }{
		{"/admin/v2/brokers/health", "ok"},
		{"/admin/v2/namespaces/public/default", ""},
		{"/admin/v2/worker/cluster/leader/ready", "true"},
	}
	if b.config.WithoutWorker {
		waits = waits[:2]
	}
	return cluster.WaitReady(ctx, p, func(ctx context.Context) (bool, string, error) {
		for len(waits) > 0 {
			if err := b.is(ctx, waits[0].path, waits[0].answer); err != nil {
				return false, "", err
			}
			waits = waits[1:]
		}
		return true, "", nil
	})
}

// is returns an error unless path responds with 200, and with answer if that is not empty.
func (b *Broker) is(ctx context.Context, path, answer string) error {
	ctx, cancel := context.WithTimeout(ctx, readyCall)
	defer cancel()
	got, err := b.Demand(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if answer != "" && string(bytes.TrimSpace(got)) != answer {
		return fmt.Errorf("GET %s answered %q instead of %q", path, got, answer)
	}
	return nil
}

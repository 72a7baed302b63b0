// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
)

const (
	// adminTimeout bounds one request: the first topic on a busy broker took 3 s.
	adminTimeout = 20 * time.Second
	// adminTries is the number of attempts while Pulsar does not respond.
	adminTries = 4
	adminPause = time.Second
	// adminBytes bounds an answer: a consumer in the stats of a topic takes 1 KiB. Errors show errorBytes of it.
	adminBytes = 8 << 20
	errorBytes = 4 << 10
)

// admin is the admin service of a Pulsar cluster, from Access.
type admin struct {
	url  string
	http *http.Client
	// method is the authentication method of requests; empty for none.
	method string
}

// create creates a topic, with partitions if there are any. A topic that exists is an error.
func (a admin) create(ctx context.Context, topic string, partitions int) error {
	path, body := adminPath(topic), ""
	if partitions > 0 {
		path, body = path+"/partitions", strconv.Itoa(partitions)
	}
	_, err := a.request(ctx, call{method: http.MethodPut, path: path, body: body, accepted: []int{http.StatusNoContent}})
	if err != nil {
		return fmt.Errorf("creating topic %s: %w", topic, err)
	}
	return nil
}

// remove deletes a topic with its subscriptions, partitioned or not. A missing topic is no error.
func (a admin) remove(ctx context.Context, topic string) error {
	path := adminPath(topic)
	answer, err := a.metadata(ctx, topic, http.StatusOK, http.StatusNotFound)
	var found struct {
		Partitions int `json:"partitions"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &found)
	}
	if err != nil {
		return fmt.Errorf("deleting topic %s: reading its partitions: %w", topic, err)
	}
	if found.Partitions > 0 {
		path += "/partitions"
	}
	_, err = a.request(ctx, call{
		method: http.MethodDelete, path: path + "?force=true", accepted: []int{http.StatusNoContent, http.StatusNotFound},
	})
	if err != nil {
		return fmt.Errorf("deleting topic %s: %w", topic, err)
	}
	return nil
}

// metadata reads the metadata of a topic. The request does not create the topic.
func (a admin) metadata(ctx context.Context, topic string, accepted ...int) (answer []byte, err error) {
	return a.request(ctx, call{
		method: http.MethodGet, path: adminPath(topic) + "/partitions?checkAllowAutoCreation=false", accepted: accepted,
	})
}

// check fails for a topic that does not exist, partitioned or not.
func (a admin) check(ctx context.Context, topic string) error {
	if _, err := a.metadata(ctx, topic, http.StatusOK); err != nil {
		return fmt.Errorf("looking for topic %s: %w", topic, err)
	}
	return nil
}

// call is a request and the status codes that it accepts.
type call struct {
	method, path, body string
	accepted           []int
}

// adminPath is the path of a complete topic name. Pulsar decodes the local name with Java's URLDecoder.
func adminPath(topic string) string {
	path := "/admin/v2/" + strings.Replace(topic, "://", "/", 1)
	local := strings.LastIndexByte(path, '/') + 1
	return path[:local] + url.QueryEscape(path[local:])
}

// request retries while Pulsar does not respond, or responds that it is busy.
func (a admin) request(ctx context.Context, c call) (answer []byte, err error) {
	for try := range adminTries {
		if try > 0 {
			if err := command.Pause(ctx, adminPause<<(try-1)); err != nil {
				return nil, err
			}
		}
		var again bool
		if answer, again, err = a.once(ctx, c); !again {
			return answer, err
		}
	}
	return nil, err
}

func (a admin) once(ctx context.Context, c call) (answer []byte, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.method, strings.TrimSuffix(a.url, "/")+c.path,
		strings.NewReader(c.body))
	if err != nil {
		return nil, false, fmt.Errorf("making a request: %w", err)
	}
	if c.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if a.method != "" { // brokers with strictAuthMethod require it
		request.Header.Set("X-Pulsar-Auth-Method-Name", a.method)
	}
	response, err := a.http.Do(request)
	if err != nil {
		return nil, true, fmt.Errorf("calling Pulsar: %w; check pulsar.adminURL", err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	answer, err = io.ReadAll(io.LimitReader(response.Body, adminBytes))
	if err != nil {
		return nil, true, fmt.Errorf("reading Pulsar's answer: %w", err)
	}
	if slices.Contains(c.accepted, response.StatusCode) {
		return answer, false, nil
	}
	err = fmt.Errorf("pulsar answered %s: %s", response.Status, bytes.TrimSpace(answer[:min(len(answer), errorBytes)]))
	if response.StatusCode == http.StatusUnauthorized {
		err = fmt.Errorf("%w; name credentials that it accepts with --pulsar-token-file or --pulsar-auth-plugin", err)
	}
	return nil, response.StatusCode >= http.StatusInternalServerError, err
}

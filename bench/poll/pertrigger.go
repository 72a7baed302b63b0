// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// perTrigger reads each topic like KEDA's scaler (pkg/scalers/pulsar_scaler.go, read at 00efa84): a goroutine for each
// trigger, one request an interval without parameters, so with consumers, publishers, bytes and sums; it reads the
// whole body and decodes all fields. In its favour: the triggers share one client and its connections, which KEDA's do
// not, and the HPA causes no second request.
type perTrigger struct {
	setting setting
	admin   string
	client  *http.Client
	// at has, for each trigger, when its last good response was requested, in Unix nanoseconds; 0 for none.
	at []atomic.Int64
}

func newPerTrigger(s setting, admin string) *perTrigger {
	return &perTrigger{
		setting: s, admin: admin, at: make([]atomic.Int64, s.Topics),
		client: &http.Client{
			Timeout:   3 * time.Second,
			Transport: &http.Transport{MaxIdleConnsPerHost: 100, MaxConnsPerHost: 100},
		},
	}
}

func (p *perTrigger) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range p.setting.Topics {
		group.Go(func() error {
			p.follow(ctx, i)
			return nil
		})
	}
	return group.Wait()
}

// follow polls one topic every interval, beginning at a random moment of the first.
func (p *perTrigger) follow(ctx context.Context, i int) {
	timer := time.NewTimer(time.Duration(rand.Float64() * float64(p.setting.Interval)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		asked := time.Now()
		if _, err := p.backlog(ctx, i); err == nil {
			p.at[i].Store(asked.UnixNano())
		}
		timer.Reset(max(0, p.setting.Interval-time.Since(asked)))
	}
}

// The fields that KEDA's scaler decodes.
type (
	triggerStats struct {
		MsgRateIn           float64                        `json:"msgRateIn"`
		MsgThroughputIn     float64                        `json:"msgThroughputIn"`
		MsgRateOut          float64                        `json:"msgRateOut"`
		MsgThroughputOut    float64                        `json:"msgThroughputOut"`
		BytesInCounter      int                            `json:"bytesInCounter"`
		MsgInCounter        int                            `json:"msgInCounter"`
		BytesOutCounter     int                            `json:"bytesOutCounter"`
		MsgOutCounter       int                            `json:"msgOutCounter"`
		AverageMsgSize      float64                        `json:"averageMsgSize"`
		MsgChunkPublished   bool                           `json:"msgChunkPublished"`
		StorageSize         int                            `json:"storageSize"`
		BacklogSize         int                            `json:"backlogSize"`
		Publishers          []any                          `json:"publishers"`
		Subscriptions       map[string]triggerSubscription `json:"subscriptions"`
		DeduplicationStatus string                         `json:"deduplicationStatus"`
	}
	triggerSubscription struct {
		MsgRateOut                       float64 `json:"msgRateOut"`
		MsgThroughputOut                 float64 `json:"msgThroughputOut"`
		BytesOutCounter                  int     `json:"bytesOutCounter"`
		MsgOutCounter                    int     `json:"msgOutCounter"`
		MsgRateRedeliver                 float64 `json:"msgRateRedeliver"`
		MsgBacklog                       int64   `json:"msgBacklog"`
		MsgBacklogNoDelayed              int     `json:"msgBacklogNoDelayed"`
		BlockedSubscriptionOnUnackedMsgs bool    `json:"blockedSubscriptionOnUnackedMsgs"`
		MsgDelayed                       int     `json:"msgDelayed"`
		UnackedMessages                  int     `json:"unackedMessages"`
		Type                             string  `json:"type"`
		MsgRateExpired                   float64 `json:"msgRateExpired"`
		LastExpireTimestamp              int     `json:"lastExpireTimestamp"`
		LastConsumedFlowTimestamp        int64   `json:"lastConsumedFlowTimestamp"`
		LastConsumedTimestamp            int     `json:"lastConsumedTimestamp"`
		LastAckedTimestamp               int     `json:"lastAckedTimestamp"`
		Consumers                        []any   `json:"consumers"`
		IsDurable                        bool    `json:"isDurable"`
		IsReplicated                     bool    `json:"isReplicated"`
	}
)

func (p *perTrigger) backlog(ctx context.Context, i int) (int64, error) {
	resource := p.admin + "/admin/v2/persistent/" + strings.TrimPrefix(p.setting.topic(i), "persistent://") +
		"/partitioned-stats"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, resource, http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("asking: %w", err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // read whole below
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("reading: %w", err)
	}
	var stats triggerStats
	if err := json.Unmarshal(body, &stats); err != nil {
		return 0, fmt.Errorf("decoding: %w", err)
	}
	found, ok := stats.Subscriptions[subscription]
	if response.StatusCode != http.StatusOK || !ok {
		return 0, fmt.Errorf("status %d, subscription found: %t", response.StatusCode, ok)
	}
	return found.MsgBacklog, nil
}

func (p *perTrigger) measuredAt(i int, _ time.Time) (time.Time, bool) {
	at := p.at[i].Load()
	return time.Unix(0, at), at != 0
}

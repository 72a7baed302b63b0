// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// instances requests each workload's instances in pods or from a function worker.
type instances struct{ pods, worker poll.InstanceSource }

// FetchInstances implements poll.InstanceSource.
func (i instances) FetchInstances(ctx context.Context, workload string) (backlog.InstancesSample, error) {
	if strings.HasPrefix(workload, function.WorkerWorkload) {
		return i.worker.FetchInstances(ctx, workload)
	}
	return i.pods.FetchInstances(ctx, workload)
}

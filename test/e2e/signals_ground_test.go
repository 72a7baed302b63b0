// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	backlogpoll "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	instances "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/instance"
	pulsaredge "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

const (
	// groundWindow is the window of rates; the poller polls once a second.
	groundWindow = 3 * time.Second
	// groundStale is longer than any stall of a busy machine.
	groundStale = time.Minute
)

// ground tests signals: a real broker with its default statistics (rates up to 60 s old), and the product's Poller with
// a Source and a Store. There is no Kubernetes.
type ground struct {
	*broker.Broker
	client  pulsar.Client
	source  *pulsaredge.Source
	store   *backlog.Store
	cluster backlog.Cluster
	pods    pods
	scraper *instances.Scraper
	stop    context.CancelFunc
	group   *errgroup.Group

	// mu guards watchers.
	mu       sync.Mutex
	watchers map[*watch]struct{}
}

var theGround = shared.New("a real broker", newGround, func(g *ground) error {
	g.Close()
	return nil
})

// onGround starts a test of the signals.
func onGround(t *testing.T) *ground {
	t.Helper()
	return theGround.Need(t)
}

func newGround(ctx context.Context) (*ground, error) {
	b, err := broker.Start(ctx, broker.Config{
		WithoutWorker: true, Progress: os.Stderr,
		Settings: map[string]string{"transactionCoordinatorEnabled": "true"},
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	g := &ground{
		Broker: b, stop: stop, group: &errgroup.Group{},
		cluster: backlog.Cluster{AdminURL: b.AdminURL()}, watchers: map[*watch]struct{}{},
	}
	if err := g.begin(ctx); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// begin connects, and starts the product's parts.
func (g *ground) begin(ctx context.Context) (err error) {
	if g.client, err = broker.Connect(g.ServiceURL(), ""); err != nil {
		return err
	}
	g.source, err = pulsaredge.New(pulsaredge.Config{
		Registerer: prometheus.NewRegistry(), AllowedHosts: []string{strings.TrimPrefix(g.AdminURL(), "http://")},
		RequestTimeout: requestTimeout,
	})
	if err != nil {
		return err
	}
	g.scraper = instances.New(prometheus.NewRegistry(), &g.pods)
	if g.store, err = backlog.NewStore(groundWindow, groundStale, backlog.Bounds{}); err != nil {
		return err
	}
	poller, err := backlogpoll.New(backlogpoll.Config{
		Store: g.store, Source: g.source, Interval: time.Second, Timeout: 10 * time.Second, PerCluster: 8,
		Jitter: func() float64 { return 0.5 }, Updated: g.updated,
		Lister: g.source, Instances: objects{g.scraper}, Workloads: 8,
	})
	if err != nil {
		return err
	}
	g.group.Go(func() error { return poller.Run(ctx) })
	return nil
}

// Close stops everything.
func (g *ground) Close() {
	g.stop()
	_ = g.group.Wait() // it was stopped
	if g.source != nil {
		g.source.Close()
	}
	if g.client != nil {
		g.client.Close()
	}
	_ = g.Discard() // the test has ended
}

// demand calls the admin API for the set-up of a test.
func (g *ground) demand(t *testing.T, method, path, body string) []byte {
	t.Helper()
	var content []byte
	if body != "" {
		content = []byte(body)
	}
	answer, err := g.Demand(t.Context(), method, path, content)
	require.NoError(t, err)
	return answer
}

// topic creates a topic of public/default with the subscription "s" at its start, and returns its complete name.
func (g *ground) topic(t *testing.T, name string, partitions int) string {
	t.Helper()
	complete := broker.TopicName(name)
	require.NoError(t, g.CreateTopic(t.Context(), complete, partitions))
	require.NoError(t, g.CreateSubscription(t.Context(), complete, "s", broker.Earliest))
	return complete
}

// policy sets a topic policy, and waits until the broker returns it: topic policies travel through a system topic.
func (g *ground) policy(t *testing.T, topic, name, value string) {
	t.Helper()
	path := "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/" + name
	g.demand(t, http.MethodPost, path, value)
	number := firstNumber.FindString(value) // an answer may have more fields
	require.NotEmpty(t, number)
	eventually(t, name+" of "+topic+" to be in force", func() bool {
		status, answer, err := g.Admin(t.Context(), http.MethodGet, path+"?applied=true", nil)
		return err == nil && status == http.StatusOK && strings.Contains(string(answer), number)
	})
}

var firstNumber = regexp.MustCompile(`[0-9]+`)

// partitionName is the name of one partition.
func partitionName(topic string, index int) string {
	return fmt.Sprintf("%s-partition-%d", topic, index)
}

// partitionNames are the topics to publish to: the partitions, or the topic itself.
func partitionNames(topic string, partitions int) []string {
	if partitions == 0 {
		return []string{topic}
	}
	names := make([]string, partitions)
	for i := range names {
		names[i] = partitionName(topic, i)
	}
	return names
}

// objects scrapes the workloads of the ground, which are all objects of Kubernetes.
type objects struct{ *instances.Scraper }

func (o objects) FetchInstances(ctx context.Context, workload backlog.Workload) (backlog.InstancesSample, error) {
	return o.Scraper.FetchInstances(ctx, workload.(backlog.Object))
}

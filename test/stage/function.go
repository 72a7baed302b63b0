// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// Namespace is that of Functions and policies.
const Namespace = "default"

// FunctionConfig configures a Function. Name and ServiceTime are required.
type FunctionConfig struct {
	Name string
	// Java replicas are Pulsar's own function instances, a process each. Otherwise they are light: Pulsar consumers in
	// this process.
	Java bool
	// ServiceTime of a message.
	ServiceTime time.Duration
	StartDelay  time.Duration
	// ReceiverQueueSize is how many messages a replica prefetches; 0 is Pulsar's 1000.
	ReceiverQueueSize int32
	// DownstreamRate limits the messages per second of all replicas together, as a shared dependency does; 0 is no limit.
	// Not Java.
	DownstreamRate float64
	// Replicas at the start; 0 is 1.
	Replicas int32
	// Partitions of the input topic; 0 is a topic without partitions.
	Partitions int
	// WithoutTopic makes the test create the input topic, and Topic is another name of it.
	WithoutTopic bool
	Topic        string
	// Runner starts the replicas; nil is that of Java, or light. The test closes it.
	Runner replica.Runner
	// Sink creates a Sink instead of a Function, and Deployment a Deployment of plain consumers; its policy needs a
	// subscription. Not Java.
	Sink, Deployment bool
	// Edit changes the object before its creation; nil is none.
	Edit func(object *unstructured.Unstructured)
	// AdminURL is the Function's URL of Pulsar; empty is the real one.
	AdminURL string
	// Objective of the score; 0 is 60 s.
	Objective time.Duration
	// Batched load, see load.Config.
	Batched  bool
	Progress io.Writer
}

// Function is a Function, or a Sink, with a topic, replicas, a load and a score.
type Function struct {
	Name  string
	Topic string
	// Score counts each message once, when it is first processed.
	Score *bench.Tally

	stage     *Stage
	kind      string
	publisher *load.Publisher
}

// AddFunction creates the topic, the pulsarConfig and the Function, and returns when all replicas consume, except with
// WithoutTopic.
func (s *Stage) AddFunction(ctx context.Context, config FunctionConfig) (*Function, error) {
	f, function, err := s.furnish(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := s.Client.Create(ctx, function); err != nil {
		return nil, fmt.Errorf("creating %s %s: %w", f.kind, config.Name, err)
	}
	if config.WithoutTopic {
		return f, nil
	}
	return f, f.consumes(ctx, int(cmp.Or(config.Replicas, 1)))
}

// TestFunction is AddFunction for a test, at the end of which the Function is removed.
func (s *Stage) TestFunction(t testing.TB, config FunctionConfig) *Function {
	t.Helper()
	f, err := s.AddFunction(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return f
}

// consumes waits until that many replicas consume.
func (f *Function) consumes(ctx context.Context, replicas int) error {
	return cluster.WaitFor(ctx, "all replicas of "+f.Name+" to consume", pollEvery,
		func(context.Context) (bool, string, error) {
			running := f.stage.Mesh.Running(Namespace, f.Name)
			return running == replicas, fmt.Sprintf("%d of %d", running, replicas), nil
		})
}

// furnish creates everything that the Function needs, and returns it with its object, which does not exist yet.
func (s *Stage) furnish(ctx context.Context, config FunctionConfig) (*Function, *unstructured.Unstructured, error) {
	f := &Function{
		Name: config.Name, Topic: cmp.Or(config.Topic, broker.TopicName(config.Name+"-in")), stage: s,
		Score: bench.NewTally(cmp.Or(config.Objective, time.Minute)), kind: mesh.KindFunction,
	}
	err := s.addRunner(ctx, config, func(c replica.Completion) { f.Score.Record(c.Sequence, c.Done.Sub(c.Published)) })
	if err != nil {
		return nil, nil, err
	}
	if !config.WithoutTopic {
		err := s.Broker.CreateTopic(ctx, f.Topic, config.Partitions)
		if err == nil {
			f.publisher, err = load.New(load.Config{
				ServiceURL: s.Broker.ServiceURL(), Topic: f.Topic, Batched: config.Batched,
			})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if config.Deployment {
		f.kind = kindDeployment
		deployment, err := s.deployment(f, config)
		return f, deployment, err
	}
	pulsarConfig := mesh.PulsarConfig(Namespace, pulsarConfigOf(config.Name), cmp.Or(config.AdminURL, s.Broker.AdminURL()),
		s.Broker.ServiceURL())
	if err := s.Client.Create(ctx, pulsarConfig); err != nil {
		return nil, nil, fmt.Errorf("creating the pulsarConfig of %s: %w", config.Name, err)
	}
	create := mesh.Function
	if config.Sink {
		f.kind, create = mesh.KindSink, mesh.Sink
	}
	function := create(Namespace, config.Name, mesh.FunctionConfig{
		Topics: []string{f.Topic}, PulsarConfig: pulsarConfig.Name, Replicas: cmp.Or(config.Replicas, 1),
		ServiceTime: config.ServiceTime, StartDelay: config.StartDelay, ReceiverQueueSize: config.ReceiverQueueSize,
	})
	if config.Edit != nil {
		config.Edit(function)
	}
	return f, function, nil
}

func pulsarConfigOf(function string) string { return function + "-pulsar" }

// pollEvery is the interval of the stage's waits.
const pollEvery = 100 * time.Millisecond

func (s *Stage) addRunner(ctx context.Context, config FunctionConfig, completed func(replica.Completion)) error {
	switch {
	case config.Runner != nil:
		s.runners.add(config.Name, config.Runner, nil)
		return nil
	case !config.Java:
		runner := replica.NewLight(completed)
		if limit := config.DownstreamRate; limit > 0 {
			// Replicas wake up late on a busy machine. The downstream makes up for at most 50 ms of that.
			const late = 0.05
			runner = replica.NewLightBehind(rate.NewLimiter(rate.Limit(limit), max(1, int(limit*late))), completed)
		}
		s.runners.add(config.Name, runner, runner.Close)
		return nil
	case config.DownstreamRate > 0:
		return fmt.Errorf("stage.FunctionConfig.DownstreamRate is %v: Java instances share no downstream, unset Java",
			config.DownstreamRate)
	}
	runner, err := replica.NewJava(ctx, replica.JavaConfig{
		Dist: s.Broker.Dist(), Progress: config.Progress, Completed: completed,
	})
	if err != nil {
		return err
	}
	s.runners.add(config.Name, runner, func() { _ = runner.Close() }) // leftovers are in the temporary directory
	return nil
}

// Publish publishes the load until ctx ends.
func (f *Function) Publish(ctx context.Context, shape load.Shape) error {
	return f.publisher.Run(ctx, shape)
}

// Load publishes the load until stop, at the latest until the test ends.
func (f *Function) Load(t testing.TB, shape load.Shape) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error { return f.Publish(ctx, shape) })
	stop = sync.OnceFunc(func() {
		cancel()
		if err := group.Wait(); err != nil { // FailNow would be a panic of the others that wait
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// PublishBurst publishes about that many messages within a tenth of a second, and returns when Pulsar has stored them.
func (f *Function) PublishBurst(ctx context.Context, messages int64) error {
	const within = 100 * time.Millisecond
	publishing, cancel := context.WithCancel(ctx)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error { return f.Publish(publishing, load.Burst(float64(messages), 0, within)) })
	stored := f.Published() + messages*9/10
	err := cluster.WaitFor(ctx, "a burst to be stored", pollEvery, func(context.Context) (bool, string, error) {
		return f.Published() >= stored, fmt.Sprint(f.Published(), " stored"), nil
	})
	cancel()
	return errors.Join(err, group.Wait())
}

// Published is the number of messages that Pulsar has stored.
func (f *Function) Published() int64 { return f.publisher.Published() }

// Messages are the published ones with the times from their publication to the end of their processing.
func (f *Function) Messages() bench.Result {
	return bench.NewEstimate(f.Published(), f.publisher.Publisher, f.Score)
}

// Remove deletes the Function, its policy and its topic, and returns when no replica is left.
func (f *Function) Remove(ctx context.Context) error {
	if f.publisher != nil {
		f.publisher.Close()
	}
	function := f.Object()
	p := &v1alpha1.AutoscalingPolicy{}
	p.Namespace, p.Name = Namespace, f.Name
	err := errors.Join(
		client.IgnoreNotFound(f.stage.Client.Delete(ctx, p)),
		client.IgnoreNotFound(f.stage.Client.Delete(ctx, function)),
		client.IgnoreNotFound(f.stage.Client.Delete(ctx, mesh.PulsarConfig(Namespace, pulsarConfigOf(f.Name), "", ""))),
	)
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", f.kind, f.Name, err)
	}
	err = cluster.WaitFor(ctx, "the replicas of "+f.Name+" to end", pollEvery,
		func(context.Context) (bool, string, error) {
			started := f.stage.Mesh.Started(Namespace, f.Name)
			return started == 0, fmt.Sprint(started, " left"), nil
		})
	if err != nil || f.publisher == nil {
		return err
	}
	return f.stage.Broker.DeleteTopic(ctx, f.Topic)
}

// Object returns an empty object of the Function, to read into or to delete.
func (f *Function) Object() *unstructured.Unstructured {
	version := mesh.GroupVersion()
	if f.kind == kindDeployment {
		version = appsv1.SchemeGroupVersion
	}
	return object(version.WithKind(f.kind), f.Name)
}

// object returns an empty object of Namespace.
func object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(Namespace)
	object.SetName(name)
	return object
}

// Replicas are spec.replicas and status.replicas of the scale subresource, and the replicas that have not ended.
type Replicas struct{ Spec, Status, Started int64 }

// Within reports whether spec.replicas is from least to most; at 0 all replicas must have ended, so that none
// processes the next messages.
func (r Replicas) Within(least, most int64) bool {
	return r.Spec >= least && r.Spec <= most && (most > 0 || r.Started == 0)
}

// Replicas reads the Function's spec.replicas and status.replicas, and counts the replicas that have not ended.
func (f *Function) Replicas(ctx context.Context) (Replicas, error) {
	object := f.Object()
	if err := f.stage.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return Replicas{}, fmt.Errorf("reading %s %s: %w", f.kind, f.Name, err)
	}
	spec, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if err != nil {
		return Replicas{}, fmt.Errorf("reading spec.replicas: %w", err)
	}
	status, _, err := unstructured.NestedInt64(object.Object, "status", "replicas")
	if err != nil {
		return Replicas{}, fmt.Errorf("reading status.replicas: %w", err)
	}
	return Replicas{Spec: spec, Status: status, Started: int64(f.stage.Mesh.Started(Namespace, f.Name))}, nil
}

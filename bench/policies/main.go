// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/keda"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// readyTimeout is several times what KEDA takes for 300 ScaledObjects.
	readyTimeout = 10 * time.Minute
	// wakeTimeout is 4 times the duration of KEDA's pull.
	wakeTimeout = 2 * time.Minute
	look        = 20 * time.Millisecond
	// start is how long pods take, at least, until Function Mesh reports them.
	start = 5 * time.Second
)

func main() {
	ctrl.SetLogger(logr.Discard()) // the parts of the stage write their own logs
	command.Main("policies", run)
}

// bench is the command line.
type bench struct {
	policies   int
	contenders []string
	calm       time.Duration
	stage      stage.Config
	// jsonPath is a file; empty is none.
	jsonPath      string
	out, progress io.Writer
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	b := bench{stage: stage.Config{Progress: progress}, out: out, progress: progress}
	flags := command.Flags("policies", progress)
	flags.IntVar(&b.policies, "policies", 300, "autoscalers of each contender, from 1 to 10000")
	names := flags.String("contenders", byHPA, "contenders with commas between them: "+strings.Join(all(), ", "))
	flags.DurationVar(&b.calm, "calm", 45*time.Second,
		"between the last autoscaler and the messages; KEDA may delay requests beyond its pollingInterval of 30s")
	flags.StringVar(&b.jsonPath, "out", "", "file for the numbers as JSON; none when empty")
	if err := command.Parse(flags, args); err != nil {
		return err
	}
	b.contenders = strings.Split(*names, ",")
	for _, name := range b.contenders {
		if !slices.Contains(all(), name) {
			return fmt.Errorf("-contenders names %q: it may name %s", name, strings.Join(all(), ", "))
		}
	}
	if b.policies < 1 || b.policies > 10_000 || b.calm < 0 {
		return fmt.Errorf("-policies is %d and -calm %s: they must be from 1 to 10000, and at least 0s", b.policies, b.calm)
	}
	return b.run(ctx)
}

// run writes its results after each contender, so that an interruption loses only one.
func (b bench) run(ctx context.Context) error {
	bins, err := binaries.BuildControlPlane(ctx, b.progress)
	if err != nil {
		return err
	}
	r := report{
		Kubernetes: bins.KubernetesVersion, CPUs: runtime.NumCPU(), Policies: b.policies,
		AllHPAsGoalSeconds: allHPAsGoal.Seconds(), Contenders: map[string]result{},
	}
	for _, name := range b.contenders {
		if r.Contenders[name], err = b.measure(ctx, name); err != nil {
			return fmt.Errorf("measuring %s: %w", name, err)
		}
		if err := output.JSON(b.jsonPath, r); err != nil {
			return err
		}
	}
	return r.writeTable(b.out)
}

// measure starts a control plane of its own, measures a contender, and cleans up.
func (b bench) measure(ctx context.Context, name string) (r result, err error) {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		if ended := group.Wait(); err == nil || errors.Is(err, context.Canceled) {
			err = errors.Join(err, ended)
		}
	}()
	c := newCrowd(b.policies)
	t, err := openTopics(ctx, c.names, b.progress)
	defer t.close()
	if err != nil {
		return r, err
	}
	config := b.stage
	config.AdminURL = t.AdminURL()
	if withKEDA(name) {
		config.KEDA = &keda.Config{Progress: b.progress}
	}
	if withPush(name) {
		config.AdapterFlags = append(slices.Clone(config.AdapterFlags), "--wake-by-push",
			"--allowed-pulsar-hosts="+t.ServiceURL())
	}
	s, err := stage.OpenApart(ctx, config)
	if err != nil {
		return r, err
	}
	defer s.Close()
	watches, endWatches := context.WithCancel(ctx)
	defer endWatches() // before the stage ends
	functions := fake.FunctionConfig{AdminURLs: []string{t.AdminURL()}, ServiceTime: time.Second}
	if err := fake.CreateFunctions(ctx, s.Client, c.names, functions); err != nil {
		return r, err
	}
	group.Go(func() error {
		scaled := func(function string, replicas int) func(context.Context) error {
			c.scaled(function, replicas, time.Now())
			return nil
		}
		return fake.FollowFunctions(watches, s.Client, stage.Namespace, start, scaled)
	})
	group.Go(func() error {
		return fake.Follow(watches, s.Client, &autoscalingv2.HorizontalPodAutoscalerList{}, stage.Namespace,
			func(event watch.Event) error {
				if event.Type == watch.Added {
					c.autoscaler(time.Now())
				}
				return nil
			})
	})
	r, err = scene{bench: b, crowd: c, topics: t, parts: s, client: s.Client, contender: name}.measure(ctx)
	if err != nil {
		return r, fmt.Errorf("%w; the adapter's last lines:\n%s", err, s.Adapter.LogTail())
	}
	return r, nil
}

// scene has Functions on a control plane, without autoscalers.
type scene struct {
	bench
	*crowd
	*topics

	parts     *stage.Stage
	client    client.Client
	contender string
}

func (s scene) measure(ctx context.Context) (result, error) {
	r := result{Setting: setting(s.contender)}
	if err := s.measureCreation(ctx, &r); err != nil {
		return r, err
	}
	if err := s.await(ctx, "all to be ready", func(ctx context.Context) (bool, string, error) {
		return allReady(ctx, s.client)
	}); err != nil {
		return r, err
	}
	return r, s.measureWakes(ctx, &r)
}

// measureCreation creates the objects of a contender and waits for the last HorizontalPodAutoscaler.
func (s scene) measureCreation(ctx context.Context, r *result) error {
	s.tell("%s: creating %d objects", s.contender, s.policies)
	begun := time.Now()
	err := fake.Each(ctx, s.names, func(ctx context.Context, function string) error {
		return s.client.Create(ctx, objectOf(s.contender, function, s.AdminURL()))
	})
	if err != nil {
		return fmt.Errorf("creating autoscalers: %w", err)
	}
	r.CreatedSeconds = time.Since(begun).Seconds()
	if !withAutoscaler(s.contender) {
		return nil
	}
	err = s.await(ctx, "an autoscaler for each", func(context.Context) (bool, string, error) {
		count := len(s.autoscalers())
		return count >= s.policies, fmt.Sprintf("%d of %d", count, s.policies), nil
	})
	if err != nil {
		return err
	}
	came := s.autoscalers()
	r.FirstHPASeconds = new(came[0].Sub(begun).Seconds())
	r.AllHPAsSeconds = new(came[len(came)-1].Sub(begun).Seconds())
	s.tell("%s: all have autoscalers after %.1f s", s.contender, *r.AllHPAsSeconds)
	return nil
}

func (s scene) await(ctx context.Context, what string, done func(context.Context) (bool, string, error)) error {
	limited, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return cluster.WaitFor(limited, what, look, done)
}

// measureWakes publishes messages to all Functions and waits until they wake.
func (s scene) measureWakes(ctx context.Context, r *result) error {
	if err := command.Pause(ctx, s.calm); err != nil {
		return err
	}
	if early := s.early(); len(early) > 0 {
		return fmt.Errorf("%d Functions have replicas without messages, such as %s", len(early), early[0])
	}
	metrics, err := s.parts.Metrics(ctx, s.parts.Adapter)
	if err != nil {
		return err
	}
	r.Watched, r.AdapterRSSMB = int(metrics.Sum(watched)), metrics.Sum(resident)/mb
	s.tell("%s: messages to each of %d Functions, of which brokers watch %d", s.contender, s.policies, r.Watched)
	s.burst(time.Now())
	if err := s.publish(ctx); err != nil {
		return err
	}
	r.PublishedSeconds = s.sinceBurst(time.Now())
	limited, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	err = cluster.WaitFor(limited, "all Functions to wake", look, func(context.Context) (bool, string, error) {
		woken := s.wakes().Woken
		return woken == s.policies, fmt.Sprintf("%d of %d", woken, s.policies), nil
	})
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	r.wakes = s.wakes() // some may not have woken, which is a result
	return nil
}

func (b bench) tell(format string, args ...any) {
	output.Printf(b.progress, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

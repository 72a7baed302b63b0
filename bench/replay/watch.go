// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// countEvery is the interval between two samples of the score, lookEvery between two samples of the servers.
	countEvery = time.Second
	lookEvery  = 5 * time.Second
	// lookTimeout bounds the requests of a sample.
	lookTimeout = 3 * time.Second
)

// counted are the messages published and processed at a time since the start of the load.
type counted struct {
	at              time.Duration
	published, done int64
}

// look is a sample of the servers and the machine at a time since the start of the load. Nil is an absent response.
type look struct {
	at time.Duration
	// load is the machine's load average over a minute.
	load  *float64
	topic *backlog.TopicSample
	// instances are by the UID of their pod.
	instances map[string]instanceLook
	policy    *v1alpha1.AutoscalingPolicy
}

type instanceLook struct {
	// consumer is the name of the instance's consumer.
	consumer string
	calls    int64
	busy     time.Duration
}

// roster has the pods of the last listing; one goroutine uses it.
type roster struct{ pods []backlog.InstanceAddress }

// Addresses implements instance.Addresses.
func (r *roster) Addresses(string) ([]backlog.InstanceAddress, error) { return r.pods, nil }

// watcher samples one Function.
type watcher struct {
	env    *environment
	f      *stage.Function
	begun  time.Time
	looks  []look
	counts []counted
}

func (e *environment) watch(f *stage.Function, begun time.Time) *watcher {
	return &watcher{env: e, f: f, begun: begun}
}

// until samples until a time since the start of the load, a crash or the end of ctx.
func (w *watcher) until(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(0) // not a ticker, which ticks twice after a stall of the machine
	defer timer.Stop()
	asked := -lookEvery
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if err := testbed.Crashed(w.env.scene); err != nil {
			return err
		}
		at := time.Since(w.begun)
		if at >= length {
			return nil
		}
		done, _ := w.f.Score.Totals()
		w.counts = append(w.counts, counted{at: at, published: w.f.Published(), done: int64(done)})
		if at-asked >= lookEvery {
			asked = at
			w.looks = append(w.looks, w.ask(ctx, at))
		}
		timer.Reset(min(countEvery, max(0, length-time.Since(w.begun))))
	}
}

// ask takes one sample.
func (w *watcher) ask(ctx context.Context, at time.Duration) look {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	l := look{at: at}
	if load, err := testbed.LoadAverage(); err == nil {
		l.load = &load
	}
	topic := backlog.Topic{Cluster: backlog.Cluster{AdminURL: w.env.scene.Broker.AdminURL()}, Name: w.f.Topic}
	if sample, err := w.env.source.Fetch(ctx, topic, backlog.Request{Detail: backlog.Full}); err == nil {
		l.topic = &sample
	}
	l.instances = w.instances(ctx)
	if policy, err := w.f.Policy(ctx); err == nil {
		l.policy = policy
	}
	return l
}

// last is the broker's answer once it has counted the entries of all partitions. A busy one may take some requests, and
// after drainTimeout it is what was answered until then.
func (w *watcher) last(ctx context.Context) (last *backlog.TopicSample) {
	limited, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for limited.Err() == nil {
		if l := w.ask(limited, time.Since(w.begun)); l.topic != nil {
			last = l.topic
			if !slices.ContainsFunc(last.Partitions, func(p backlog.PartitionSample) bool { return p.AddedEntries == nil }) {
				return last
			}
		}
		select {
		case <-limited.Done():
		case <-time.After(countEvery):
		}
	}
	return last
}

// instances reads the counters of the pods; nil if it cannot list them or none responds.
func (w *watcher) instances(ctx context.Context) map[string]instanceLook {
	var pods corev1.PodList
	if err := w.env.scene.Client.List(ctx, &pods, client.InNamespace(stage.Namespace)); err != nil {
		return nil
	}
	w.env.roster.pods = nil
	consumers := map[string]string{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		port, ok := pod.Annotations["prometheus.io/port"]
		if !ok || pod.Status.PodIP == "" || !strings.HasPrefix(pod.Name, w.f.Name+"-function-") {
			continue
		}
		w.env.roster.pods = append(w.env.roster.pods, backlog.InstanceAddress{
			ID: string(pod.UID), HostPort: net.JoinHostPort(pod.Status.PodIP, port),
		})
		consumers[string(pod.UID)] = "public/default/" + w.f.Name + "#" + pod.Labels[appsv1.PodIndexLabel]
	}
	sample, err := w.env.scraper.FetchInstances(ctx, w.f.Name)
	if err != nil {
		return nil
	}
	found := map[string]instanceLook{}
	for _, one := range sample.Instances {
		if one.Calls != nil && one.BusyTime != nil {
			found[one.ID] = instanceLook{consumer: consumers[one.ID], calls: *one.Calls, busy: *one.BusyTime}
		}
	}
	return found
}

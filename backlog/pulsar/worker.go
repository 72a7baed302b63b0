// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// workerTimeout is enough for six instances that do not answer: on the Kubernetes runtime the worker calls its pods one
// after another by gRPC and waits 5 s for each (GRPC_TIMEOUT_SECS).
const workerTimeout = 30 * time.Second

// turnTimeout is how long a request waits for those before it, a third of that.
const turnTimeout = workerTimeout / 3

// Worker reads functions, sinks and sources from Pulsar's function worker, and changes their parallelism. It implements
// poll.InstanceSource for workloads of function.Component, and is safe for concurrent use.
//
// Describe is cheap for the worker, which answers from memory. FetchInstances and Status are not: on the Kubernetes
// runtime one call reads every pod in turn, and with all runtimes they wait while the worker stops or deletes
// instances. So only one at a time is active for each worker. Call them at most once a minute, and scrape the pods
// instead if possible.
//
// A redirect to the worker that owns the function (307) is followed as those of brokers are: Config.AllowedHosts must
// have the workers' names that are not behind their Service. The credentials need the action "functions", "sinks" or
// "sources" on the namespace.
type Worker struct {
	client *client
	now    func() time.Time
	// turns allow one request for a status at a time to each worker.
	turns *hosts
	// hanging has the end of the pause of each worker that hangs, which gets none.
	hanging *backlog.Cache[string, time.Time]
	// last has the last answer of FetchInstances, until the next request.
	last *backlog.Cache[function.Component, backlog.InstancesSample]
}

// maxWorkloads bounds the cached answers.
const maxWorkloads = 10_000

// Worker returns a reader of the function workers of the same clusters, which uses the Source's connections. It
// requests the instances of a component at most once in every, and otherwise returns its last answer, which callers
// drop because it is not newer.
func (s *Source) Worker(every time.Duration) *Worker {
	const unpaced = 1_000_000
	return &Worker{
		client: s.client, now: s.now, turns: newHosts(1, unpaced, nil),
		hanging: backlog.NewCache[string, time.Time](hangFor, maxHosts),
		last:    backlog.NewCache[function.Component, backlog.InstancesSample](every, maxWorkloads),
	}
}

// Describe reads what the component consumes and its configuration.
//
// Errors wrap backlog.ErrFunctionNotFound, backlog.ErrNoWorker, backlog.ErrUnavailable while the worker is starting,
// backlog.ErrUnsupported for a source that reads from outside Pulsar or inputs that do not share one subscription, or a
// reason of the connection. Workers of 4.0.8 and 5.0.0-M1 do not report the consumer properties of functions, so a
// subscription in these is unknown.
func (w *Worker) Describe(ctx context.Context, component function.Component) (config function.Description,
	err error,
) {
	a, err := componentAddress(component)
	if err != nil {
		return function.Description{}, err
	}
	f, parallelism, err := w.configuration(ctx, a, component)
	if err != nil {
		return function.Description{}, err
	}
	return describe(f, component, parallelism)
}

func (w *Worker) configuration(ctx context.Context, a address, component function.Component) (
	f function.Function, parallelism int, err error,
) {
	err = w.client.get(ctx, a, callComponent, "", func(r io.Reader) (err error) {
		f, parallelism, err = decodeConfig(r, component)
		return err
	})
	return f, parallelism, err
}

// FetchInstances reads the counters of the component's instances. Errors are those of Describe.
//
// An instance that does not run, or that its worker could not reach, counts as Silent: the worker sends zeros for it.
// The answer has the configured number of instances: instances that were added to the StatefulSet are not in it.
//
// The time in calls is the lifetime mean of a call times their number. This is the sum that the instance keeps, up to
// the rounding of a float64, unless a call was timed and not yet counted; then it lacks that call. For an asynchronous
// Java function this holds for all calls in flight. A rate over a window has that error once at each end.
func (w *Worker) FetchInstances(
	ctx context.Context, component function.Component,
) (sample backlog.InstancesSample, err error) {
	if last, fresh := w.last.Get(component, w.now()); fresh {
		return last, nil
	}
	a, err := componentAddress(component)
	if err != nil {
		return backlog.InstancesSample{}, err
	}
	runtime := function.Java
	if component.Kind == function.KindFunction { // only Java's latency includes failed calls
		f, _, err := w.configuration(ctx, a, component)
		if err != nil {
			return backlog.InstancesSample{}, err
		}
		runtime = f.Runtime
	}
	at, err := w.status(ctx, a, func(r io.Reader) (err error) {
		sample, err = decodeStatus(r, component, runtime)
		return err
	})
	if err != nil {
		return backlog.InstancesSample{}, err
	}
	sample.At = at
	w.last.Put(component, sample, at)
	return sample, nil
}

// status requests /status, one at a time, and returns when it began.
func (w *Worker) status(ctx context.Context, a address, decode decodeFunc) (at time.Time, err error) {
	a.timeout = workerTimeout
	err = w.inTurn(ctx, a, func(ctx context.Context) error {
		at = w.now()
		return w.client.get(ctx, a, callComponentStatus, "", decode)
	})
	return at, err
}

// componentAddress validates the URL and the names, which all come from users.
func componentAddress(c function.Component) (address, error) {
	base, err := parseBase(c.Address())
	switch {
	case err != nil && c.WorkerURL != "":
		return address{}, backlog.Errorf(backlog.ErrUnsupported,
			"the URL of the function worker must look like http://pulsar-functions-worker.pulsar:6750, "+
				"with no path and no credentials")
	case err != nil:
		return address{}, err
	}
	if err := checkNames(c); err != nil {
		return address{}, err
	}
	plural := string(c.Kind) + "s"
	return address{
		cluster: c.Cluster, base: base,
		path:    "/admin/v3/" + plural + "/" + c.Tenant + "/" + c.Namespace + "/" + url.PathEscape(c.Name),
		subject: string(c.Kind) + " " + c.FullName(), grant: plural + " on namespace " + c.Tenant + "/" + c.Namespace,
		absent: backlog.ErrFunctionNotFound, remedy: "create it or correct its name",
	}, nil
}

func checkNames(c function.Component) error {
	switch c.Kind {
	case function.KindFunction, function.KindSink, function.KindSource:
	default:
		return backlog.Errorf(backlog.ErrUnsupported, "a worker runs functions, sinks and sources, not a %q",
			backlog.Quote(string(c.Kind)))
	}
	forbidden := func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' }
	if !backlog.IsEntityName(c.Tenant) || !backlog.IsEntityName(c.Namespace) || c.Name == "" || isStep(c.Name) ||
		strings.ContainsFunc(c.Name, forbidden) {
		return backlog.Errorf(backlog.ErrUnsupported, "%q must look like tenant/namespace/name",
			backlog.Quote(c.FullName()))
	}
	return nil
}

func decodeConfig(r io.Reader, component function.Component) (f function.Function, parallelism int, err error) {
	var answer function.WorkerConfig
	if err := decodeJSON(r, &answer); err != nil {
		return function.Function{}, 0, err
	}
	if name := answer.FullName(); name != component.FullName() {
		return function.Function{}, 0, fmt.Errorf("it is about %s", backlog.Quote(name))
	}
	f, err = answer.Function(component.Kind)
	if err != nil {
		return function.Function{}, 0, err
	}
	return f, *answer.Parallelism, nil
}

// describe is what the component consumes; ErrUnsupported if that is not one subscription.
func describe(f function.Function, component function.Component, parallelism int) (function.Description, error) {
	subscription, kind, err := f.Subscription()
	switch {
	case errors.Is(err, backlog.ErrUnsupported):
		return function.Description{}, err
	case err != nil:
		return function.Description{}, backlog.Errorf(backlog.ErrUnsupported, "%s", err)
	}
	subscription.Cluster, subscription.Workload = component.Cluster, component
	return function.Description{
		Subscription: subscription, Type: kind, Parallelism: parallelism, NeverAcknowledges: f.NeverAcknowledges,
	}, nil
}

// hangFor is the pause after a request for a worker's status that got no answer in time. The request still blocks a
// thread of its web server: it waits for the lock that the worker holds while it stops instances, about 10 s for one
// that ignores interrupts, and while it deletes a function, for which it calls the broker about its topics. On 4.0.8
// eight such requests were seen to take all threads of a broker with a worker inside, which then waited for one another
// for minutes.
const hangFor = time.Minute

// inTurn waits for the turn of a request up to turnTimeout. The request itself has workerTimeout, even if the turn is
// late: it blocks the worker as long, whether or not the answer is awaited. A context with less counts as no failure.
func (w *Worker) inTurn(ctx context.Context, a address, request func(context.Context) error) error {
	turn, end := context.WithTimeout(ctx, turnTimeout)
	defer end()
	release, err := w.turns.takeTurn(turn, a.base)
	if err != nil {
		return noTurnFault(a, a.base, "a worker is asked for one status at a time, and those before it took until the time "+
			"was over: look for instances that do not answer", err)
	}
	defer release()
	if until, hangs := w.hanging.Get(a.base.Host, w.now()); hangs {
		return backlog.Errorf(backlog.ErrUnavailable,
			"%s did not say in time how instances are, which it does not while it stops or deletes "+
				"some: next request at %s", a.base.Host, until.UTC().Format(time.RFC3339))
	}
	timed, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	if err = request(timed); ctx.Err() == nil && backlog.TimedOut(err) {
		now := w.now()
		w.hanging.Put(a.base.Host, now.Add(hangFor), now)
	}
	return err
}

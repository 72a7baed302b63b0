// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Addresses returns the instances of a workload from the cache, each with its own ID. No address and no error means
// that the workload has no instances. Errors wrap a reason of package backlog.
type Addresses interface {
	Addresses(workload backlog.Object) ([]backlog.InstanceAddress, error)
}

// Scraper reads the metrics of instances. Its methods are safe for concurrent use.
type Scraper struct {
	addresses Addresses
	client    *http.Client
	timeout   time.Duration
	maxBytes  int64
	silent    silences

	scrapes  *prometheus.CounterVec
	duration prometheus.Histogram
}

// FetchInstances scrapes all instances of the workload concurrently. Instances that do not answer, or not with an
// instance's metrics, are counted in Silent.
//
// If none of several answers, it returns an error with the reason of the first instead of an empty sample, since the
// sum of an empty sample would look like an idle workload. A workload without instances is a sample without any. Errors
// wrap a reason of package backlog.
func (s *Scraper) FetchInstances(ctx context.Context, workload backlog.Object) (backlog.InstancesSample, error) {
	addresses, err := s.addresses.Addresses(workload)
	if err != nil {
		return backlog.InstancesSample{}, fmt.Errorf("finding the instances of %s: %w", workload, err)
	}
	at := time.Now()
	samples, errs := make([]backlog.InstanceSample, len(addresses)), make([]error, len(addresses))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, address := range addresses {
		group.Go(func() error {
			samples[i], errs[i] = s.scrapeUnlessSilent(ctx, address)
			return nil
		})
	}
	_ = group.Wait() // errors are in errs
	if errors.Is(ctx.Err(), context.Canceled) {
		return backlog.InstancesSample{},
			fmt.Errorf("%w: scraping the instances of %s: %w", backlog.ErrUnreachable, workload, ctx.Err())
	}
	return mergeAnswers(workload, at, samples, errs)
}

// mergeAnswers returns the samples of the instances without an error.
func mergeAnswers(workload backlog.Object, at time.Time, samples []backlog.InstanceSample, errs []error) (
	backlog.InstancesSample, error,
) {
	sample := backlog.InstancesSample{At: at}
	var first error
	for i, err := range errs {
		if err != nil {
			sample.Silent++
			first = cmp.Or(first, err)
			continue
		}
		sample.Instances = append(sample.Instances, samples[i])
	}
	switch {
	case first == nil || len(sample.Instances) > 0:
		return sample, nil
	case sample.Silent == 1:
		return backlog.InstancesSample{}, fmt.Errorf("the only instance of %s: %w", workload, first)
	default:
		return backlog.InstancesSample{},
			fmt.Errorf("none of the %d instances of %s answers; the first: %w", sample.Silent, workload, first)
	}
}

// scrapeUnlessSilent scrapes an instance, unless it was silent lately.
func (s *Scraper) scrapeUnlessSilent(
	ctx context.Context, address backlog.InstanceAddress,
) (backlog.InstanceSample, error) {
	if why := s.silent.reason(address, time.Now()); why != nil {
		return backlog.InstanceSample{}, why
	}
	sample, err := s.scrapeTwice(ctx, address)
	if ctx.Err() == nil {
		s.silent.record(address, err, time.Now())
	}
	return sample, err
}

// scrapeTwice scrapes an instance, and again if messages seem to be in flight.
func (s *Scraper) scrapeTwice(ctx context.Context, address backlog.InstanceAddress) (backlog.InstanceSample, error) {
	if err := ctx.Err(); err != nil {
		return backlog.InstanceSample{}, newFault(backlog.ErrUnreachable, address, err, "no time was left for the request")
	}
	sample, err := s.scrape(ctx, address)
	if err != nil || !seemsAsynchronous(sample) {
		return sample, err
	}
	again, err := s.scrape(ctx, address)
	if err != nil {
		return backlog.InstanceSample{}, err
	}
	return receivedFirst(sample, again), nil
}

func (s *Scraper) scrape(ctx context.Context, address backlog.InstanceAddress) (
	sample backlog.InstanceSample, err error,
) {
	defer func(start time.Time) { s.observe(time.Since(start), err) }(time.Now())
	target := url.URL{Scheme: "http", Host: address.Address.String(), Path: "/metrics", RawQuery: onlySeries()}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return backlog.InstanceSample{}, newFault(backlog.ErrProtocol, address, nil, "its address is not one")
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	response, err := s.client.Do(request)
	if err != nil {
		return backlog.InstanceSample{}, s.noAnswer(ctx, address, err)
	}
	defer func() { _ = response.Body.Close() }() // the answer was read or abandoned
	if response.StatusCode != http.StatusOK {
		return backlog.InstanceSample{}, statusFault(address, response.StatusCode)
	}
	body := &backlog.Body{ReadCloser: response.Body}
	sample, err = decode(http.MaxBytesReader(nil, body, s.maxBytes), address.ID)
	sample.At = time.Now() // the answer to all may wait for slower ones
	var long *http.MaxBytesError
	switch {
	case err == nil:
		return sample, nil
	case errors.As(err, &long):
		return backlog.InstanceSample{}, newFault(backlog.ErrProtocol, address, nil,
			fmt.Sprintf("its metrics have more than %d bytes: remove user metrics", s.maxBytes))
	case body.Broken != nil:
		return backlog.InstanceSample{}, s.noAnswer(ctx, address, body.Broken)
	default:
		return backlog.InstanceSample{}, newFault(backlog.ErrProtocol, address, nil, err.Error())
	}
}

const (
	// firstSilence is how long an instance is not scraped after two timeouts in a row. It doubles with each further one,
	// up to longestSilence: a port that a network policy closes stays closed, and each request holds its place until it
	// times out.
	firstSilence, longestSilence = 20 * time.Second, 5 * time.Minute
	// maxSilences bounds the remembered instances.
	maxSilences = 100_000
)

// silences are the instances that did not answer in time.
type silences struct {
	of *backlog.Cache[backlog.InstanceAddress, silence]
}

// silence is of one instance: the timeouts in a row, and until when it is not scraped.
type silence struct {
	timeouts int
	until    time.Time
	why      error
}

func newSilences() silences {
	return silences{backlog.NewCache[backlog.InstanceAddress, silence](2*longestSilence, maxSilences)}
}

// reason is why an instance is not scraped now; nil if it may be.
func (s silences) reason(address backlog.InstanceAddress, now time.Time) error {
	if one, known := s.of.Get(address, now); known && now.Before(one.until) {
		return one.why
	}
	return nil
}

// record records the result of a scrape. A refused connection costs nothing, and an instance that starts refuses.
func (s silences) record(address backlog.InstanceAddress, err error, now time.Time) {
	if !backlog.TimedOut(err) {
		s.of.Delete(address)
		return
	}
	one, _ := s.of.Get(address, now)
	one.timeouts, one.why = one.timeouts+1, err
	if one.timeouts > 1 {
		doublings := min(one.timeouts-2, 4)
		one.until = now.Add(min(firstSilence<<doublings, longestSilence))
	}
	s.of.Put(address, one, now)
}

// seemsAsynchronous reports whether an instance seems to have more messages in flight than a synchronous one can.
//
// The difference may be only apparent, since the received counter may be read last: 442 for a synchronous function with
// 4000 messages/s on an overloaded machine (Pulsar 5.0.0-M1), and 9 if only our series are requested.
func seemsAsynchronous(s backlog.InstanceSample) bool {
	return s.InFlight() > backlog.MostSynchronous
}

// receivedFirst returns the second answer with the received counter of the first. Nothing in it was received after the
// finished counters were read, so its messages in flight are a lower bound: each finished message was received.
func receivedFirst(first, second backlog.InstanceSample) backlog.InstanceSample {
	if first.Received <= second.Received { // more was received before a restart
		second.Received = max(first.Received, second.Finished())
	}
	return second
}

func newFault(reason error, address backlog.InstanceAddress, cause error, words string) error {
	return backlog.Errorf(reason, "%s at %s: %s", backlog.Quote(address.ID), address.Address, backlog.Quote(words)).
		Because(cause)
}

func statusFault(address backlog.InstanceAddress, status int) error {
	answered := fmt.Sprintf("it answered %d", status)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return newFault(backlog.ErrForbidden, address, nil,
			answered+", which instances never do: does a service mesh in between refuse it?")
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return newFault(backlog.ErrUnavailable, address, nil, answered+": retried soon")
	default:
		return newFault(backlog.ErrProtocol, address, nil, answered+": is that the metrics port of an instance?")
	}
}

// noAnswer is the fault for a request without a complete answer.
func (s *Scraper) noAnswer(ctx context.Context, address backlog.InstanceAddress, err error) error {
	limit := s.timeout
	if ctx.Err() != nil {
		limit = 0 // the time of the caller was over before
	}
	words := backlog.ConnectionCause(err, limit)
	switch {
	case errors.Is(err, context.Canceled):
		words = "canceled"
	case errors.Is(err, syscall.ECONNREFUSED):
		words += ": is it still starting?"
	case limit > 0 && backlog.TimedOut(err):
		words += ": does a network policy close its metrics port?"
	}
	return newFault(backlog.ErrUnreachable, address, err, words)
}

func resultLabel(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return backlog.ReasonLabel(err)
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Addresses returns the instances of a workload from the cache, each with its own ID. No address and no error means
// that the workload has no instances. Errors wrap a reason of package backlog.
type Addresses interface {
	Addresses(workload string) ([]backlog.InstanceAddress, error)
}

// Scraper reads the metrics of instances. Its methods are safe for concurrent use.
type Scraper struct {
	addresses Addresses
	client    *http.Client
	metrics   *metrics
	timeout   time.Duration
	maxBytes  int64
	silent    silences
}

// FetchInstances scrapes all instances of the workload concurrently. Instances that do not answer, or not with an
// instance's metrics, are counted in Silent.
//
// If none of several answers, it returns an error with the reason of the first instead of an empty sample, since the
// sum of an empty sample would look like an idle workload. A workload without instances is a sample without any. Errors
// wrap a reason of package backlog.
func (s *Scraper) FetchInstances(ctx context.Context, workload string) (backlog.InstancesSample, error) {
	addresses, err := s.addresses.Addresses(workload)
	if err != nil {
		return backlog.InstancesSample{}, fmt.Errorf("finding the instances of %s: %w", workload, err)
	}
	at := time.Now()
	answers := s.scrapeAll(ctx, addresses)
	if errors.Is(ctx.Err(), context.Canceled) {
		return backlog.InstancesSample{},
			fmt.Errorf("%w: scraping the instances of %s: %w", backlog.ErrUnreachable, workload, ctx.Err())
	}
	return mergeAnswers(workload, at, answers)
}

// answer is the answer of one address.
type answer struct {
	samples []backlog.InstanceSample
	err     error
}

// mergeAnswers merges all answers into one sample.
func mergeAnswers(workload string, at time.Time, answers []answer) (backlog.InstancesSample, error) {
	sample := backlog.InstancesSample{At: at}
	var first error
	for _, a := range answers {
		if a.err != nil {
			sample.Silent++
			if first == nil {
				first = a.err
			}
		}
		sample.Instances = append(sample.Instances, a.samples...)
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

// scrapeAll scrapes each address, and returns the answers in their order.
func (s *Scraper) scrapeAll(ctx context.Context, addresses []backlog.InstanceAddress) []answer {
	answers := make([]answer, len(addresses))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, address := range addresses {
		group.Go(func() error {
			answers[i].samples, answers[i].err = s.scrapeUnlessSilent(ctx, address)
			return nil
		})
	}
	_ = group.Wait() // errors are in the answers
	return answers
}

// scrapeUnlessSilent scrapes an instance, unless it was silent lately.
func (s *Scraper) scrapeUnlessSilent(ctx context.Context, address backlog.InstanceAddress) ([]backlog.InstanceSample,
	error,
) {
	if why := s.silent.reason(address, time.Now()); why != nil {
		return nil, why
	}
	samples, err := s.scrapeTwice(ctx, address)
	if ctx.Err() == nil {
		s.silent.record(address, err, time.Now())
	}
	return samples, err
}

// scrapeTwice scrapes an instance, and again if messages seem to be in flight.
func (s *Scraper) scrapeTwice(ctx context.Context, address backlog.InstanceAddress) ([]backlog.InstanceSample, error) {
	if err := ctx.Err(); err != nil {
		return nil, newFault(backlog.ErrUnreachable, address, err, "no time was left for the request")
	}
	samples, err := s.scrapeOnce(ctx, address)
	if err != nil || !slices.ContainsFunc(samples, seemsAsynchronous) {
		return samples, err
	}
	again, err := s.scrapeOnce(ctx, address)
	if err != nil {
		return nil, err
	}
	return receivedFirst(samples, again), nil
}

// scrapeOnce sends one request, and counts it.
func (s *Scraper) scrapeOnce(ctx context.Context, address backlog.InstanceAddress) ([]backlog.InstanceSample, error) {
	start := time.Now()
	samples, err := s.scrape(ctx, address)
	s.metrics.observe(time.Since(start), err)
	return samples, err
}

// scrape reads the metrics of one process.
func (s *Scraper) scrape(ctx context.Context, address backlog.InstanceAddress) ([]backlog.InstanceSample, error) {
	target, err := metricsURL(address.HostPort)
	if err != nil {
		return nil, newFault(backlog.ErrProtocol, address, nil, err.Error())
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, target, http.NoBody)
	if err != nil {
		return nil, newFault(backlog.ErrProtocol, address, nil, "its address is not one")
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, s.noAnswer(ctx, address, err)
	}
	defer func() { _ = response.Body.Close() }() // the answer was read or abandoned
	if response.StatusCode != http.StatusOK {
		return nil, statusFault(address, response.StatusCode)
	}
	body := backlog.NewBoundedReader(response.Body, s.maxBytes)
	var long backlog.TooLongError
	samples, err := decode(body, address)
	switch {
	case err == nil:
		return samples, nil
	case errors.As(err, &long):
		return nil, newFault(backlog.ErrProtocol, address, nil,
			fmt.Sprintf("its metrics have more than %d bytes: remove user metrics", s.maxBytes))
	case body.Broken() != nil:
		return nil, s.noAnswer(ctx, address, body.Broken())
	default:
		return nil, newFault(backlog.ErrProtocol, address, nil, err.Error())
	}
}

// metricsURL returns the URL of an address. It refuses an address that leads to another host.
func metricsURL(hostPort string) (string, error) {
	host, port, err := net.SplitHostPort(hostPort)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || number == 0 || !isHost(host) {
		return "", errors.New("its address must look like 10.2.0.17:9094")
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/metrics", RawQuery: onlySeries()}
	return u.String(), nil
}

// isHost reports whether the host can be an IP address or a name.
func isHost(host string) bool {
	for _, c := range []byte(host) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != ':' {
			return false
		}
	}
	return host != ""
}

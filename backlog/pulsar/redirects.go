// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// maxRedirects covers a lookup broker, the owner, and one move of the bundle in between.
	maxRedirects = 3
	// ownersTTL is how long a topic's owner is cached: after that the admin URL is next, which costs a redirect.
	ownersTTL = time.Minute
	// maxOwners bounds the cached owners of topics, about 400 bytes each.
	maxOwners = 100_000
)

// checkRedirect is the CheckRedirect of a call. A broker redirects to the owner of the topic, which is another host:
// the credentials are sent there if it is an allowed host, or a pod behind the Service that the admin URL names, and
// nothing to any other. direct is true if the request was for the owner.
func (e *exchange) checkRedirect(direct bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		from, to := via[len(via)-1].URL, req.URL
		switch {
		case req.Method != via[0].Method: // a change that would become a GET
			return http.ErrUseLastResponse
		case (to.Scheme != "http" && to.Scheme != "https") || to.Hostname() == "" || to.User != nil:
			return noHTTPRedirect(e.address, from)
		case from.Scheme == "https" && to.Scheme == "http":
			return backlog.Errorf(backlog.ErrForbidden,
				"%s redirects %s from https to http://%s: set webServicePortTls on the brokers",
				from.Host, e.address.subject, backlog.Quote(to.Host))
		case e.barred(e.address.cluster, to) != "" && !behind(e.address.base, to):
			return backlog.Errorf(backlog.ErrHostNotAllowed, "%s redirects %s to %s, which %s",
				from.Host, e.address.subject, backlog.Quote(to.Host), e.barred(e.address.cluster, to))
		case direct:
			return backlog.Errorf(backlog.ErrUnavailable, "%s does not own %s any more: retried soon", from.Host,
				e.address.subject).Because(errMoved)
		case len(via) > maxRedirects:
			return backlog.Errorf(backlog.ErrUnavailable,
				"%s was redirected %d times, last by %s: do the brokers agree on its owner?",
				e.address.subject, len(via), from.Host)
		default:
			return nil
		}
	}
}

func noHTTPRedirect(a address, from *url.URL) error {
	return backlog.Errorf(backlog.ErrProtocol, "%s redirects %s to no HTTP URL: is it a Pulsar admin service?",
		from.Host, a.subject)
}

// behind reports whether the host of a URL has any name below that of the other, with the same scheme and port. Pods
// behind a Kubernetes Service have, and brokers of a StatefulSet advertise them, such as
// broker-0.broker.pulsar.svc.cluster.local behind broker.pulsar. A name without a namespace may have others below.
func behind(service, pod *url.URL) bool {
	name := func(u *url.URL) string {
		host, _ := canonicalHost(u.Hostname()) // an invalid one is no host's suffix
		return strings.TrimSuffix(strings.TrimSuffix(host, ".svc.cluster.local"), ".svc")
	}
	return service.Scheme == pod.Scheme && portOf(service) == portOf(pod) &&
		strings.Contains(name(service), ".") && strings.HasSuffix(name(pod), "."+name(service))
}

// ownedTopic identifies a topic by the path of its resource.
type ownedTopic struct {
	cluster backlog.Cluster
	path    string
}

func (e *exchange) owned() ownedTopic {
	return ownedTopic{cluster: e.address.cluster, path: e.address.owner}
}

// errMoved marks a redirect from the broker that was the known owner of the topic.
var errMoved = errors.New("moved")

// tryOwner sends the call to the topic's owner if it is known, which saves the broker of the admin URL half the
// requests. Otherwise, and if that broker is no longer the owner, it sends the call to the admin URL.
func (e *exchange) tryOwner(ctx context.Context) (retryable bool, err error) {
	if base := e.owner(); base != nil {
		a, err := e.try(ctx, base, true)
		if err == nil || !lostOwner(a, err) {
			return a.hop.retryable(), err
		}
		e.owners.Delete(e.owned())
		if ctx.Err() != nil { // no time left: the next call goes to the admin URL
			return a.hop.retryable(), err
		}
	}
	a, err := e.try(ctx, e.address.base, false)
	return a.hop.retryable(), err
}

// owner is the broker to call, nil for the admin URL.
func (e *exchange) owner() *url.URL {
	if e.address.owner == "" {
		return nil
	}
	base, _ := e.owners.Get(e.owned(), time.Now())
	return base
}

// learnOwner caches the broker that answered about a topic, if it is not that of the admin URL. It may get requests:
// checkRedirect allowed it.
func (e *exchange) learnOwner(u *url.URL) {
	if e.address.owner != "" && u.Scheme == e.address.base.Scheme && u.Host != e.address.base.Host {
		e.owners.Put(e.owned(), &url.URL{Scheme: u.Scheme, Host: u.Host}, time.Now())
	}
}

// lostOwner reports whether another broker may own the topic now.
func lostOwner(a *attempt, err error) bool {
	switch a.hop.status {
	case http.StatusNotFound, http.StatusPreconditionFailed, http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	default:
		return redirectStatus(a.hop.status) || errors.Is(err, errHeldBack) ||
			(errors.Is(err, backlog.ErrUnreachable) && !errors.Is(err, context.Canceled))
	}
}

func redirectStatus(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	default:
		return false
	}
}

// allowedHosts are the hosts that may get requests, and with them the token.
type allowedHosts []hostPattern

// Schemes of the binary protocol.
const (
	brokerScheme    = "pulsar"
	brokerSchemeTLS = "pulsar+ssl"
)

// hostPattern is one entry: an exact host, or all names below a suffix. An empty port allows every port, and an empty
// scheme all schemes, see allowOwn.
type hostPattern struct {
	scheme string
	host   string
	// below is true if host is a suffix such as ".pulsar.svc", after one or more labels.
	below bool
	port  string
}

func parseAllowedHosts(patterns []string) (allowedHosts, error) {
	hosts := make(allowedHosts, 0, len(patterns))
	for i, pattern := range patterns {
		parsed, ok := parseHostPattern(pattern)
		if !ok {
			shown := strconv.Quote(pattern)
			if strings.Contains(pattern, "@") {
				shown = "with credentials, which are not for here"
			}
			return nil, fmt.Errorf(
				"allowedHosts[%d] is %s: it must be host, host:port or a URL such as https://host:port, where host may start with "+
					"\"*.\" and has no other *", i, shown)
		}
		hosts = append(hosts, parsed)
	}
	return hosts, nil
}

// parseHostPattern parses an entry. A URL without a port has the default port of its scheme, and a host without a port
// has all ports.
func parseHostPattern(pattern string) (hostPattern, bool) {
	var parsed hostPattern
	rest := pattern
	if scheme, after, found := strings.Cut(pattern, "://"); found {
		parsed.scheme, rest = scheme, after
		switch scheme {
		case "http", "https", brokerScheme, brokerSchemeTLS:
		default:
			return parsed, false
		}
	}
	rest, parsed.below = strings.CutPrefix(rest, "*.")
	u, err := url.Parse("http://" + rest)
	if err != nil || u.Host != rest { // a path, a query or credentials
		return parsed, false
	}
	if _, err := backlog.ParseAuthority(u); err != nil {
		return parsed, false
	}
	host, _ := canonicalHost(u.Hostname()) // ParseAuthority accepted it
	if parsed.host = host; parsed.below {
		if _, err := netip.ParseAddr(host); err == nil {
			return parsed, false
		}
		parsed.host = "." + host
	}
	if parsed.port = strings.TrimLeft(u.Port(), "0"); parsed.scheme != "" {
		u.Scheme = parsed.scheme
		parsed.port = portOf(u)
	}
	return parsed, true
}

// allow reports whether the scheme, the host and the port of the URL match an entry. An invalid host matches none.
func (hosts allowedHosts) allow(u *url.URL) bool {
	return slices.ContainsFunc(hosts, func(p hostPattern) bool { return p.matches(u) })
}

// allowOwn is allow for the program's own credentials: without TLS they are exposed to the network, so the entry must
// have http:// or pulsar://. Otherwise the author of a policy could choose it.
func (hosts allowedHosts) allowOwn(u *url.URL) bool {
	return slices.ContainsFunc(hosts, func(p hostPattern) bool {
		return p.matches(u) && (p.scheme != "" || u.Scheme == "https" || u.Scheme == brokerSchemeTLS)
	})
}

func (p hostPattern) matches(u *url.URL) bool {
	host, ok := canonicalHost(u.Hostname())
	if !ok || (p.port != "" && p.port != portOf(u)) || (p.scheme != "" && p.scheme != u.Scheme) {
		return false
	}
	if p.below {
		return len(host) > len(p.host) && strings.HasSuffix(host, p.host)
	}
	return host == p.host
}

// canonicalHost makes names comparable: backlog.ParseHost, without the dot at the end of a complete name.
func canonicalHost(host string) (string, bool) {
	host, err := backlog.ParseHost(host)
	return strings.TrimSuffix(host, "."), err == nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return strings.TrimLeft(u.Port(), "0")
	case u.Scheme == "https":
		return "443"
	case u.Scheme == brokerScheme:
		return "6650"
	case u.Scheme == brokerSchemeTLS:
		return "6651"
	default:
		return "80"
	}
}

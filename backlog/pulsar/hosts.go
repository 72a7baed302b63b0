// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

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

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// allowedHosts decides where requests, and with them the token, may go.
type allowedHosts []hostPattern

// hostPattern is one entry: an exact host, or everything below a suffix; an empty port allows every port.
type hostPattern struct {
	host string
	// below says that host is a suffix such as ".pulsar.svc", and that one or more labels come before it.
	below bool
	port  string
}

func parseAllowedHosts(patterns []string) (allowedHosts, error) {
	hosts := make(allowedHosts, 0, len(patterns))
	for i, pattern := range patterns {
		parsed, ok := parseHostPattern(pattern)
		if !ok {
			return nil, fmt.Errorf("allowedHosts[%d] is %q: it must be host or host:port, where host may start with \"*.\" and has no other *",
				i, pattern)
		}
		hosts = append(hosts, parsed)
	}
	return hosts, nil
}

func parseHostPattern(pattern string) (hostPattern, bool) {
	var parsed hostPattern
	rest, below := strings.CutPrefix(pattern, "*.")
	if strings.ContainsAny(rest, "*/?#@\\ ") {
		return parsed, false
	}
	u, err := url.Parse("http://" + rest)
	if err != nil || u.Hostname() == "" || strings.HasSuffix(rest, ":") {
		return parsed, false
	}
	host := canonicalHost(u.Hostname())
	if below {
		if net.ParseIP(host) != nil {
			return parsed, false
		}
		host = "." + host
	}
	return hostPattern{host: host, below: below, port: u.Port()}, true
}

// maxHostBytes is what DNS allows; longer names would only fill messages.
const maxHostBytes = 253

// allow says whether the host and port of the URL match an entry.
func (hosts allowedHosts) allow(u *url.URL) bool {
	host, port := canonicalHost(u.Hostname()), portOf(u)
	if len(host) > maxHostBytes {
		return false
	}
	for _, pattern := range hosts {
		if pattern.port != "" && pattern.port != port {
			continue
		}
		if host == pattern.host && !pattern.below {
			return true
		}
		if pattern.below && len(host) > len(pattern.host) && strings.HasSuffix(host, pattern.host) {
			return true
		}
	}
	return false
}

// canonicalHost makes names comparable: lower case, without the dot that marks a complete name.
func canonicalHost(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// ParseAdminURL returns the canonical URL of an admin service or of a function worker, so that all owners of a cluster
// share its fetches: scheme://host[:port] with the host as ParseHost returns it, without the default port of the scheme
// and without a trailing slash. It is idempotent. The error continues a sentence about the URL, and does not repeat the
// URL, which may contain credentials.
func ParseAdminURL(text string) (string, error) {
	const want = "must be http://host:port or https://host:port, one host, with no path and no credentials"
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("cannot be read, it " + want) // the cause repeats the text
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.User != nil || u.Opaque != "" || (u.Path != "" && u.Path != "/") ||
		strings.ContainsAny(text, "?#") {
		return "", errors.New(want)
	}
	authority, err := ParseAuthority(u)
	if err != nil {
		return "", errors.New(want)
	}
	return u.Scheme + "://" + authority, nil
}

// ParseAuthority returns the canonical host[:port] of a URL with http or https.
func ParseAuthority(u *url.URL) (string, error) {
	host, err := ParseHost(u.Hostname())
	if err != nil {
		return "", err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", errors.New("must have digits after the colon")
		}
		return host, nil
	}
	number, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || number == 0:
		return "", errors.New("must have a port from 1 to 65535")
	case (u.Scheme == "http" && number == 80) || (u.Scheme == "https" && number == 443):
		return host, nil
	default:
		return host + ":" + strconv.FormatUint(number, 10), nil
	}
}

// Bounds of names, in bytes (RFC 1035 §2.3.4).
const (
	maxNameBytes  = 253
	maxLabelBytes = 63
)

// ParseHost returns the canonical form of a host, as url.URL.Hostname gives it: an IP address as netip formats it, or a
// name in lower case. It refuses hosts that programs interpret differently: an IPv6 zone, which may be any text, and a
// name that ends in a number, such as 127.1 or 0x7f000001, which C libraries interpret as IPv4. Labels of names have
// letters, digits, dashes and underscores of ASCII; names with other letters are written as xn--.
func ParseHost(text string) (string, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		if address.Zone() != "" {
			return "", errors.New("must be without a zone")
		}
		return address.Unmap().String(), nil
	}
	name := strings.ToLower(text)
	labels := strings.Split(strings.TrimSuffix(name, "."), ".")
	if len(name) > maxNameBytes+1 || isNumber(labels[len(labels)-1]) {
		return "", errBadHost
	}
	for _, label := range labels {
		if label == "" || len(label) > maxLabelBytes || strings.ContainsFunc(label, notOfName) {
			return "", errBadHost
		}
	}
	return name, nil
}

var errBadHost = errors.New("must be a name of DNS or an IP address")

func notOfName(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
}

// isNumber reports whether C libraries read the label as a part of an IPv4 address: decimal, octal or hexadecimal.
func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	return !strings.ContainsFunc(digits, func(r rune) bool {
		return (r < '0' || r > '9') && (!hex || r < 'a' || r > 'f')
	})
}

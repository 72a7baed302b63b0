// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "strconv"

// Cluster identifies a Pulsar cluster and how it is spoken to. Owners that track topics of equal Clusters share the
// fetches.
type Cluster struct {
	// AdminURL of the brokers, in the spelling of ParseAdminURL.
	AdminURL string
	// Access names the credentials, never holds them: they may rotate under one name. Empty for the program's own.
	Access string
}

// Credentials are what a client shows to a Pulsar cluster and how it checks the cluster's certificate, in Pulsar's own
// terms (client.conf). The zero value shows nothing. Values are comparable: equal credentials may share a client.
type Credentials struct {
	// Plugin is authPlugin: a class name such as org.apache.pulsar.client.impl.auth.AuthenticationToken, or its short form
	// (token, tls, basic, oauth2); empty for none.
	Plugin string
	// Params are authParams in the plugin's own syntax: token:..., file:///..., or JSON.
	Params string
	// TrustCerts has the PEM certificates that sign the brokers'; empty for the system's.
	TrustCerts string
	// AllowInsecureConnection leaves the certificate unchecked.
	AllowInsecureConnection bool
	// SkipHostnameVerification leaves the name in the certificate unchecked.
	SkipHostnameVerification bool
}

// String shows no secret, so that no log and no message can: the plugin's name alone.
func (c Credentials) String() string {
	if c.Plugin == "" {
		return "no credentials"
	}
	return "credentials for " + strconv.Quote(c.Plugin)
}

// GoString is String, for %#v.
func (c Credentials) GoString() string { return c.String() }

// MarshalText is String too, for structured logs.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

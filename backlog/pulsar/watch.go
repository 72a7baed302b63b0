// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/reader"
)

// Watch implements poll.Watcher: a reader at the broker that owns the partition, which the admin service names. A
// broker is an allowed host as any other.
func (s *Source) Watch(ctx context.Context, partition backlog.Topic, watching func()) (message bool, err error) {
	broker, err := s.client.broker(ctx, partition)
	at, watched := s.now(), false
	if err == nil {
		message, err = s.readers.Read(ctx, broker, partition.Name, func() {
			watched = true
			s.client.metrics.observe(callSubscribe, s.now().Sub(at), nil)
			watching()
		})
	}
	if watched || ctx.Err() != nil {
		err = nil
	}
	if err != nil {
		s.client.metrics.refuse(callSubscribe, err)
	}
	return message, err
}

// broker looks up the owner of the partition, and the credentials for it. It may wait as long as the watch.
func (c *client) broker(ctx context.Context, partition backlog.Topic) (reader.Broker, error) {
	a, err := topicAddress(partition)
	if err != nil {
		return reader.Broker{}, err
	}
	release, err := c.lookups.takeTurn(ctx, a.base)
	if err != nil {
		return reader.Broker{}, noTurnFault(a, a.base, c.lookups.usedUp(), err)
	}
	defer release()
	a.path, a.owner = strings.Replace(a.path, "/admin/v2/", "/lookup/v2/topic/", 1), ""
	var plain, secure string
	err = c.get(ctx, a, callLookup, "", func(r io.Reader) (err error) {
		plain, secure, err = decodeLookup(r)
		return err
	})
	if err != nil {
		return reader.Broker{}, err
	}
	text, scheme := plain, brokerScheme
	if a.base.Scheme == "https" {
		text, scheme = secure, brokerSchemeTLS
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != scheme || u.Hostname() == "" || u.Port() == "" {
		return reader.Broker{}, backlog.Errorf(backlog.ErrUnsupported, "%s names no %s:// address of the broker of %s",
			a.base.Host, scheme, a.subject)
	}
	u = &url.URL{Scheme: scheme, Host: u.Host}
	if why := c.barred(a.cluster, u); why != "" {
		return reader.Broker{}, backlog.Errorf(backlog.ErrHostNotAllowed, "%s %s", backlog.Quote(u.Host), why)
	}
	shown, err := c.credentials.Authenticate(ctx, a.cluster.Access)
	if err != nil {
		return reader.Broker{}, noCredentials(a, err)
	}
	b := reader.Broker{Host: u.Host, Access: a.cluster.Access}
	b.Method, b.Secret, b.TLS = shown.Handshake()
	if scheme == brokerScheme {
		b.TLS = nil
	}
	return b, nil
}

// decodeLookup reads the addresses of a broker, without TLS and with it.
//
// Source: org.apache.pulsar.common.lookup.data.LookupData.
func decodeLookup(r io.Reader) (plain, secure string, err error) {
	var answer struct {
		Plain  string `json:"brokerUrl"`
		Secure string `json:"brokerUrlTls"`
	}
	err = decodeJSON(r, &answer)
	if err == nil && answer.Plain == "" && answer.Secure == "" {
		err = errors.New("no broker is named")
	}
	return answer.Plain, answer.Secure, err
}

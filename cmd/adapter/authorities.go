// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

const (
	// authoritiesTimeout bounds the wait for certificate authorities that a cluster may not have.
	authoritiesTimeout = 5 * time.Second
	authoritiesTick    = 10 * time.Millisecond
)

// authoritiesListener accepts no connection until the authorities of clients are known, or authoritiesTimeout is over.
// The API server library reads them from ConfigMap extension-apiserver-authentication while it already serves. A client
// that connects before shows no certificate, and is system:anonymous for as long as it keeps that connection: the
// aggregator would get 403 for every request of the HorizontalPodAutoscaler controller.
type authoritiesListener struct {
	net.Listener
	known func() bool

	wait, close sync.Once
	closed      chan struct{}
}

// awaitAuthorities has the server wait; without delegated authentication there is nothing to wait for.
func awaitAuthorities(config *genericapiserver.Config) {
	header, all := config.Authentication.RequestHeaderConfig, config.SecureServing.ClientCA
	if header == nil || all == nil {
		return
	}
	config.SecureServing.Listener = &authoritiesListener{
		Listener: config.SecureServing.Listener,
		closed:   make(chan struct{}),
		known: func() bool {
			// The bundle is that of clients, then that of the aggregator.
			aggregator := len(header.CAContentProvider.CurrentCABundleContent())
			return aggregator > 0 && len(all.CurrentCABundleContent()) > aggregator
		},
	}
}

// Accept implements net.Listener.
func (l *authoritiesListener) Accept() (net.Conn, error) {
	l.wait.Do(l.await)
	return l.Listener.Accept()
}

func (l *authoritiesListener) await() {
	ticker, timeout := time.NewTicker(authoritiesTick), time.NewTimer(authoritiesTimeout)
	defer ticker.Stop()
	defer timeout.Stop()
	for known := false; !known; { // and one tick more, in which the TLS configuration takes them over
		known = l.known()
		select {
		case <-l.closed:
			return
		case <-timeout.C:
			return
		case <-ticker.C:
		}
	}
}

// Close implements net.Listener. It may be called more than once.
func (l *authoritiesListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

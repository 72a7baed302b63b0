// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// serviceOfAPIServer is the cluster IP of Service kubernetes: the first of the range.
const serviceOfAPIServer = "10.0.0.1"

// proxy listens on the cluster IPs of Services and forwards connections to ready endpoints, in place of kube-proxy.
type proxy struct {
	client kubernetes.Interface
	// apiServer is the address of Service kubernetes. This control plane does not publish its endpoints.
	apiServer string

	mu        sync.Mutex // guards the fields below
	listeners map[string]net.Listener
	backends  map[string][]string // addresses by that of the listener
	turn      int
}

func newProxy(client kubernetes.Interface, host string) (*proxy, error) {
	at, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	return &proxy{
		client: client, apiServer: at.Host, listeners: map[string]net.Listener{}, backends: map[string][]string{},
	}, nil
}

// follow updates listeners and endpoints to the current Services, and returns the addresses of headless ones by name.
func (p *proxy) follow(ctx context.Context) (headless map[string][]string, err error) {
	services, err := p.client.CoreV1().Services("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	published, err := p.client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	headless = map[string][]string{}
	wanted := map[string][]string{net.JoinHostPort(serviceOfAPIServer, "443"): {p.apiServer}}
	for i := range services.Items {
		service := &services.Items[i]
		if service.Spec.ClusterIP == corev1.ClusterIPNone && len(service.Spec.Ports) > 0 {
			headless[service.Name+"."+service.Namespace+".svc"] = hostsOf(
				endpoints(published.Items, service, service.Spec.Ports[0].Name))
			continue
		}
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone ||
			service.Spec.ClusterIP == serviceOfAPIServer {
			continue
		}
		for _, port := range service.Spec.Ports {
			at := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port)))
			wanted[at] = endpoints(published.Items, service, port.Name)
		}
	}
	return headless, p.set(ctx, wanted)
}

// hostsOf returns addresses without their ports.
func hostsOf(addresses []string) (hosts []string) {
	for _, address := range addresses {
		host, _, _ := net.SplitHostPort(address) // endpoints added the port
		hosts = append(hosts, host)
	}
	return hosts
}

// endpoints returns the ready endpoints of the port, or, without any, those that are serving and terminating.
func endpoints(all []discoveryv1.EndpointSlice, service *corev1.Service, port string) []string {
	var ready, serving []string
	for i := range all {
		s := &all[i]
		if s.Namespace != service.Namespace || s.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for _, p := range s.Ports {
			if p.Port == nil || p.Name == nil || *p.Name != port {
				continue
			}
			for _, e := range s.Endpoints {
				at := net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port)))
				if is(e.Conditions.Ready) {
					ready = append(ready, at)
				}
				if is(e.Conditions.Serving) {
					serving = append(serving, at)
				}
			}
		}
	}
	if len(ready) > 0 {
		return ready
	}
	return serving
}

func is(condition *bool) bool { return condition != nil && *condition }

func (p *proxy) set(ctx context.Context, wanted map[string][]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backends = wanted
	var errs []error
	for at := range wanted {
		if p.listeners[at] != nil {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		if err != nil {
			errs = append(errs, fmt.Errorf("listening for a Service: %w", err))
			continue
		}
		p.listeners[at] = listener
		go accept(listener, func() (net.Conn, error) { return p.dial(ctx, at) })
	}
	for at, listener := range p.listeners {
		if _, found := wanted[at]; !found {
			errs = append(errs, listener.Close())
			delete(p.listeners, at)
		}
	}
	return errors.Join(errs...)
}

// dial connects to an endpoint in turn, and to the next one after a failure.
func (p *proxy) dial(ctx context.Context, at string) (net.Conn, error) {
	p.mu.Lock()
	backends, first := p.backends[at], p.turn
	p.turn++
	p.mu.Unlock()
	errs := []error{fmt.Errorf("connecting to %s: its Service has no ready endpoint", at)}
	for i := range backends {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", backends[(first+i)%len(backends)])
		if err == nil {
			return connection, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range slices.Collect(maps.Keys(p.listeners)) {
		_ = p.listeners[at].Close() // nothing depends on the error
		delete(p.listeners, at)
	}
}

// accept forwards each connection to one of dial, until the listener is closed.
func accept(listener net.Listener, dial func() (net.Conn, error)) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			server, err := dial()
			if err != nil {
				reset(client)
				return
			}
			go pass(server, client)
			pass(client, server)
		}()
	}
}

// reset ends an accepted connection like a refused one, as far as possible.
func reset(connection net.Conn) {
	if tcp, isTCP := connection.(*net.TCPConn); isTCP {
		_ = tcp.SetLinger(0) // it is closed anyway
	}
	_ = connection.Close()
}

// pass copies one direction, and closes both ends with it, as a deleted endpoint does.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // an end by an error is an end
	_ = to.Close()
	_ = from.Close()
}

// Expose makes a server on a port of 127.0.0.1 reachable for pods until ctx ends, and returns its URL with the scheme.
func Expose(ctx context.Context, address string) (string, error) {
	scheme, host, found := strings.Cut(address, "://")
	if !found {
		return "", fmt.Errorf("exposing %q: it must be a URL", address)
	}
	_, port, err := net.SplitHostPort(strings.TrimSuffix(host, "/"))
	if err != nil {
		return "", fmt.Errorf("exposing %s: %w", address, err)
	}
	at := net.JoinHostPort(Gateway, port)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return "", fmt.Errorf("exposing %s: %w", address, err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go accept(listener, func() (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	})
	return scheme + "://" + at, nil
}

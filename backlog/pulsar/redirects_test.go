// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// owned are a front that redirects the calls on orders, and two brokers that may own it.
type owned struct {
	way             *network
	front, old, now *fakeBroker
	source          *Source
	registry        *prometheus.Registry
}

func newOwned(t *testing.T) *owned {
	t.Helper()
	o := &owned{way: newNetwork(t), registry: prometheus.NewRegistry()}
	o.front, o.old, o.now = o.way.broker("front:8080"), o.way.broker("broker-0:8080"), o.way.broker("broker-1:8080")
	o.front.on("orders/partitions", answers(notPartitioned))
	o.front.on("orders/stats", redirectsTo(o.old.URL))
	o.front.on("orders/internalStats", redirectsTo(o.old.URL))
	for _, broker := range []*fakeBroker{o.old, o.now} {
		broker.on("orders/partitions", answers(notPartitioned))
		broker.on("orders/stats", answers(goodTopic))
		broker.on("orders/internalStats", answers(`{"entriesAddedCounter":3}`))
	}
	o.source = o.way.source(Config{Own: ownToken(t, "secret"), Registerer: o.registry})
	return o
}

func (o *owned) fetch(t *testing.T, detail backlog.Detail) error {
	t.Helper()
	_, err := o.source.Fetch(t.Context(), o.front.topic("orders"), backlog.Request{Detail: detail})
	return err
}

func TestFetchGoesToTheOwnerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t)
		require.NoError(t, o.fetch(t, backlog.Full))
		require.Equal(t, []string{"orders/partitions", "orders/stats"}, o.front.requested())
		require.Equal(t, []string{"orders/stats", "orders/internalStats"}, o.old.requested(), "the second call knows already")
		redirected := o.old.request(0)
		require.Equal(t, "Bearer secret", redirected.Header.Get("Authorization"))
		require.Equal(t, "token", redirected.Header.Get("X-Pulsar-Auth-Method-Name"))
		require.Equal(t, "false", redirected.URL.Query().Get("excludeConsumers"))
		for range 5 {
			require.NoError(t, o.fetch(t, backlog.Slim))
		}
		require.Len(t, o.front.requested(), 2)
		require.Len(t, o.old.requested(), 7)
		require.Equal(t, "Bearer secret", o.old.request(6).Header.Get("Authorization"))
		require.Equal(t, "/admin/v2/persistent/public/default/orders/stats?"+statsQuery(false, backlog.Slim),
			o.old.request(6).RequestURI)

		after(ownersTTL)
		require.NoError(t, o.fetch(t, backlog.Slim))
		require.Len(t, o.front.requested(), 4, "the owner is cached for a minute, as the number of partitions")
		require.Equal(t, "orders/stats", o.front.requested()[3])
	})
}

func TestARedirectToAPodBehindTheServiceIsFollowed(t *testing.T) {
	for name, tt := range map[string]struct {
		service, pod string
		refused      bool
	}{
		"a StatefulSet":                 {service: "broker.pulsar:8080", pod: "b-0.broker.pulsar.svc.cluster.local:8080"},
		"both without the domain":       {service: "broker.pulsar.svc:8080", pod: "broker-0.broker.pulsar:8080"},
		"of another domain":             {service: "pulsar.example.org:8080", pod: "a.b.pulsar.example.org:8080"},
		"of another Service":            {service: "broker.pulsar:8080", pod: "broker-0.other.pulsar:8080", refused: true},
		"of another namespace":          {service: "broker.pulsar:8080", pod: "broker-0.broker.media:8080", refused: true},
		"a name that ends alike":        {service: "broker.pulsar:8080", pod: "my-broker.pulsar:8080", refused: true},
		"outside of the cluster":        {service: "broker.pulsar:8080", pod: "b.broker.pulsar.svc.test:8080", refused: true},
		"of a name without a namespace": {service: "pulsar:8080", pod: "x.pulsar:8080", refused: true},
		"at another port":               {service: "broker.pulsar:8080", pod: "broker-0.broker.pulsar:9090", refused: true},
		"below an address":              {service: "10.0.0.1:8080", pod: "x.10.0.0.1:8080", refused: true},
		"the Service of a namespace":    {service: "broker-0.broker.pulsar:8080", pod: "broker.pulsar:8080", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := newNetwork(t)
				front, owner := way.broker(tt.service), way.broker(tt.pod)
				front.on("orders/partitions", answers(notPartitioned))
				front.on("orders/stats", redirectsTo(owner.URL))
				owner.on("orders/stats", answers(`{"msgInCounter":5,"subscriptions":{}}`))
				source, err := New(Config{
					AllowedHosts: []string{front.URL}, Own: ownToken(t, "secret"),
					Registerer: prometheus.NewRegistry(), dial: way.dial,
				})
				require.NoError(t, err)
				t.Cleanup(source.Close)
				for range 2 { // by the redirect, and to the known owner
					_, err = source.Fetch(t.Context(), front.topic("orders"), backlog.Request{Detail: backlog.Slim})
					if tt.refused {
						require.ErrorIs(t, err, backlog.ErrHostNotAllowed)
						require.Empty(t, owner.requested())
						continue
					}
					require.NoError(t, err)
				}
				if !tt.refused {
					require.Equal(t, "Bearer secret", owner.request(1).Header.Get("Authorization"))
				}
			})
		})
	}
}

func TestAFormerOwnerCostsNoFetch(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		fault  fault
		result string
	}{
		"it redirects":                 {answer: redirectsTo("http://broker-1:8080"), result: "stats moved"},
		"it redirects elsewhere":       {answer: redirectsTo("http://elsewhere:8080"), result: "stats host_not_allowed"},
		"it does not have the topic":   {answer: says(404, "Topic not found"), result: "stats topic_not_found"},
		"it found no owner":            {answer: says(412, "Failed to find ownership"), result: "stats unavailable"},
		"it is shutting down":          {answer: says(503, "Broker is shutting down"), result: "stats unavailable"},
		"it does not exist":            {fault: refuse, result: "stats unreachable"},
		"it ends in the middle":        {fault: cutsAfter(100), result: "stats unreachable"},
		"it has been down for a while": {fault: refuse, result: "stats held_back"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t)
				require.NoError(t, o.fetch(t, backlog.Slim))
				o.source.Close()
				synctest.Wait()
				o.front.on("orders/stats", redirectsTo(o.now.URL))
				if tt.answer != nil {
					o.old.on("orders/stats", tt.answer)
				}
				o.way.fail("broker-0:8080", tt.fault)
				if tt.result == "stats held_back" {
					for range failuresToOpen {
						require.True(t, sendsOne(t, o.source.client.chain, "broker-0:8080", bad))
					}
				}

				require.NoError(t, o.fetch(t, backlog.Slim), "the same fetch uses the admin URL")

				require.Len(t, o.now.requested(), 1)
				require.Equal(t, 1.0, counted(t, o.registry)[tt.result], "%v", counted(t, o.registry))
				require.NoError(t, o.fetch(t, backlog.Slim))
				require.Len(t, o.now.requested(), 2, "and the new owner is requested at once after that")
				require.Len(t, o.front.requested(), 3)
			})
		})
	}
}

func TestAnOwnerThatHangsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t)
		require.NoError(t, o.fetch(t, backlog.Slim))
		o.source.Close()
		synctest.Wait()
		o.way.fail("broker-0:8080", swallows)
		o.front.on("orders/stats", redirectsTo(o.now.URL))
		require.ErrorIs(t, o.fetch(t, backlog.Slim), backlog.ErrUnreachable, "the time of the call is over")
		require.NoError(t, o.fetch(t, backlog.Slim))
		require.Len(t, o.now.requested(), 1)
	})
}

func TestRefusalsOfAnOwnerStand(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a missing permission": says(401, "Unauthorized"), "a 500": sends(500, "text/plain",
			"trace"), "garbage": answers("[]"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t)
				require.NoError(t, o.fetch(t, backlog.Slim))
				o.old.on("orders/stats", answer)
				require.Error(t, o.fetch(t, backlog.Slim))
				require.Len(t, o.front.requested(), 2, "no other broker would know better")
			})
		})
	}
}

func TestOwnersAreRememberedForEachCluster(t *testing.T) {
	resource := func(path, access, base string) address {
		u, err := url.Parse(base)
		require.NoError(t, err)
		return address{cluster: backlog.Cluster{AdminURL: base, Access: access}, base: u, path: path, owner: path}
	}
	here := resource("/orders", "", "http://front:8080")
	ownerless := here
	ownerless.owner = ""
	tests := map[string]struct {
		learns, reads address
		at            string
		owner         string
	}{
		"the same topic": {
			here, here, "http://broker-0:8080/orders/stats?authoritative=true",
			"http://broker-0:8080",
		},
		"another topic": {
			here, resource("/other", "", "http://front:8080"), "http://broker-0:8080",
			"",
		},
		"other credentials": {
			here, resource("/orders", "a", "http://front:8080"), "http://broker-0:8080",
			"",
		},
		"another cluster": {
			here, resource("/orders", "", "http://front-1:8080"), "http://broker-0:8080",
			"",
		},
		"a redirect to TLS":    {here, here, "https://broker-0:8443", ""},
		"the admin URL itself": {here, here, "http://front:8080/orders/stats", ""},
		"something without an owner": {
			ownerless, ownerless, "http://broker-0:8080", "",
		},
		"an entry of the topic": {
			here, here.position(backlog.NotPartitioned, "resize", 6), "http://broker-0:8080", "http://broker-0:8080",
		},
		"an entry of a partition": {
			here.position(3, "resize", 1), here.position(3, "resize", 6), "http://broker-0:8080", "http://broker-0:8080",
		},
		"an entry of another partition": {
			here.position(3, "resize", 1), here.position(4, "resize", 1), "http://broker-0:8080", "",
		},
		"TLS to TLS, with its own path?": {
			resource("/orders", "", "https://front"),
			resource("/orders", "", "https://front"), "https://broker-0:8443/x", "https://broker-0:8443",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &client{owners: backlog.NewCache[ownedTopic, *url.URL](ownersTTL, maxOwners)}
			at, err := url.Parse(tt.at)
			require.NoError(t, err)
			(&exchange{client: c, address: tt.learns}).learnOwner(at)
			got := (&exchange{client: c, address: tt.reads}).owner()
			if tt.owner == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, tt.owner, got.String())
		})
	}
}

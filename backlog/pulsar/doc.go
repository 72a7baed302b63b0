// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package pulsar reads the state of topics from Pulsar's admin REST API: it implements poll.Source and poll.Lister.
//
// Layer 2, an edge: it uses package backlog and one outside system, Pulsar's admin service (4.0 and later). It never
// sums up partitions, never decides anything, and never shows a credential in an error or a metric.
//
// A call is a GET or a PUT, one or two attempts of an http.Client, and its decoder. The client's Transport is a chain:
//
//	auth      adds the current credentials of the name (package auth); connections differ by certificates only
//	breaker   fails at once while the host fails: opens after 3 consecutive failures, probes after 1, 2, 4 ... 30 s; a
//	          probe, and a check before timeouts open it, is a cheap request of its own (breaker.go)
//	limiter   waits for one of the host's connections and for its rate, checks the breaker once more, calls
//	          http.Transport, and holds the connection until the body is closed
//
// Its CheckRedirect keeps the credentials in a redirect to hosts of Config.AllowedHosts and to pods behind the Service
// of the admin URL, and sends nothing to others.
// The breaker and the limiter of a host are the same for all credentials; breaker.go has the table of failures that
// count for a host. An attempt in the context of the request collects the records of the steps, such as the time
// without waits.
//
// The limiter is a semaphore without an order between owners: those take turns before they come here. Topics, listings
// and instances come from the lines of package poll, and requests to function workers from target.Background. A check
// of a host belongs to a request that had its turn.
//
// One Fetch is one call, `/stats` or `/partitioned-stats`, with the parameters that keep it cheap for the broker; one
// with entry counters also reads `/internalStats`. A sample's Detail is what was answered. An age that the broker
// cannot read from its storage fails the whole call, so the call is repeated without it; while the storage hangs, ages
// are only requested occasionally. The number of partitions comes from `/partitions` and is cached for a minute;
// additional partitions are seen at once, fewer or another kind of topic when the call fails. The broker that a topic's
// calls are redirected to is cached for a minute. HTTP_PROXY and similar variables are ignored: brokers are inside the
// cluster. Answers are decoded as they arrive, and only the needed parts are kept, without subscriptions that were not
// requested: a huge answer costs time, not memory. The memory of all answers that are being decoded is bounded
// together, see body.go.
//
// Worker reads functions, sinks and sources from the function worker, in the brokers or apart (poll.InstanceSource). It
// uses the Source's client.
//
// Every error wraps one reason of package backlog, see errors.go for the table, and its text is for users.
//
// Unknown values stay unknown: an answer without some partitions reports it (TopicSample.Incomplete), one without any
// is backlog.ErrPartial, and one without a number is backlog.ErrProtocol. Unknown fields are skipped, since every
// Pulsar release adds some. A negative msgBacklog, msgInCounter or msgOutCounter is backlog.ErrProtocol, because 0
// would mean "nothing to do" (apache/pulsar#5543); a negative msgDelayed or unackedMessages, a miscount of brokers
// (apache/pulsar#759, #5755, #23805), becomes 0, which can only add replicas.
//
// Metrics (metrics.go, docs/metrics.md) count each retry separately. The calls are those of address.go, the results
// those of backlog.ReasonLabel with ok, canceled, held_back (not sent, to protect the host) and moved (a broker that no
// longer owns the topic; the admin URL is next). A request that was not sent has no duration.
package pulsar

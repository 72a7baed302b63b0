// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// address is the URL of a resource, and its names in messages.
type address struct {
	cluster backlog.Cluster
	// base is the admin URL without a path.
	base *url.URL
	// path is the escaped path of the resource.
	path string

	// subject is the resource of the request, such as the topic's name.
	subject string
	// grant is the permission that the role of the credentials needs, such as "consume on namespace public/default".
	grant string
	// absent is the reason for a 404 in Pulsar's JSON, and remedy its fix.
	absent error
	remedy string
	// timeout is the maximum time of the answer; 0 for Config.RequestTimeout.
	timeout time.Duration
	// large is true if the answer may be large, and take longer than that although the host is healthy.
	large bool
	// scalable is true for a topic that consists of segments.
	scalable bool
	// owner is the path of the topic that one broker owns: the others redirect there. Empty if each broker answers.
	owner string
}

// topicAddress validates the admin URL and the name, which both come from users.
func topicAddress(topic backlog.Topic) (address, error) {
	path, err := topicPath(topic.Name)
	if err != nil {
		return address{}, err
	}
	return adminAddress(topic.Cluster, address{
		path: path, subject: topic.Name, grant: "consume on namespace " + backlog.NamespaceOf(topic.Cluster, topic.Name).Name,
		absent: backlog.ErrTopicNotFound, remedy: "create it or correct its name", owner: path,
		scalable: strings.HasPrefix(topic.Name, backlog.ScalableDomain),
	})
}

// namespaceAddress is the address of the topics of a namespace.
func namespaceAddress(namespace backlog.Namespace) (address, error) {
	tenant, local, _ := strings.Cut(namespace.Name, "/")
	if !backlog.IsEntityName(tenant) || !backlog.IsEntityName(local) {
		return address{}, backlog.Errorf(backlog.ErrUnsupported, "namespace %q must look like tenant/namespace",
			backlog.Quote(namespace.Name))
	}
	return adminAddress(namespace.Cluster, address{
		path: "/admin/v2/persistent/" + namespace.Name, subject: "namespace " + namespace.Name,
		grant:  "consume on namespace " + namespace.Name,
		absent: backlog.ErrTopicNotFound, remedy: "create the namespace or correct its name",
	})
}

func adminAddress(cluster backlog.Cluster, a address) (address, error) {
	base, err := parseBase(cluster.AdminURL)
	if err != nil {
		return address{}, err
	}
	a.cluster, a.base = cluster, base
	return a, nil
}

func parseBase(adminURL string) (*url.URL, error) {
	plain, err := backlog.ParseAdminURL(adminURL)
	if err != nil {
		return nil, badAdminURL()
	}
	base, err := url.Parse(plain)
	if err != nil {
		return nil, badAdminURL()
	}
	return base, nil
}

func (a address) resource(call callName, query string) string {
	resource := a.base.Scheme + "://" + a.base.Host + a.path
	if part := call.path(); part != "" {
		resource += "/" + part
	}
	if query != "" {
		resource += "?" + query
	}
	return resource
}

// position is the address of one entry of a subscription's backlog; the first one is 1.
func (a address) position(partition int, subscription string, position int64) address {
	if partition != backlog.NotPartitioned {
		a.path += backlog.PartitionSuffix + strconv.Itoa(partition)
		a.subject += backlog.PartitionSuffix + strconv.Itoa(partition)
	}
	a.owner = a.path
	a.path += "/subscription/" + url.QueryEscape(subscription) + "/position/" + strconv.FormatInt(position, 10)
	return a
}

// topicPath maps persistent://tenant/namespace/name to /admin/v2/persistent/tenant/namespace/name, and topic://, the
// domain of scalable topics, to /admin/v2/scalable. Pulsar decodes the
// name with Java's URLDecoder, for which url.QueryEscape is the counterpart (a "+" is a space there).
func topicPath(name string) (string, error) {
	domain, rest, found := strings.Cut(name, "://")
	if !found {
		return "", badTopicName(name)
	}
	switch domain {
	case "persistent":
	case "topic":
		domain = "scalable"
	case "non-persistent":
		return "", backlog.Errorf(backlog.ErrUnsupported, "%s keeps no backlog to scale on: use a persistent:// topic",
			backlog.Quote(name))
	default:
		return "", badTopicName(name)
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 || parts[2] == "" {
		return "", badTopicName(name)
	}
	if !backlog.IsEntityName(parts[0]) || !backlog.IsEntityName(parts[1]) || isStep(parts[2]) {
		return "", badTopicName(name)
	}
	return "/admin/v2/" + domain + "/" + parts[0] + "/" + parts[1] + "/" + url.QueryEscape(parts[2]), nil
}

// isStep reports whether it is a step in a path, which would lead to another resource.
func isStep(part string) bool { return part == "." || part == ".." }

// callName is the label of a call in metrics, a space, and the last part of its URL, empty for the resource itself.
type callName string

const (
	callPartitions       callName = "partitions partitions"
	callStats            callName = "stats stats"
	callPartitionedStats callName = "partitioned-stats partitioned-stats"
	// The calls that also request the age: they read from the broker's storage, so they take longer and may fail alone.
	callStatsWithAge             callName = "stats-age stats"
	callPartitionedStatsWithAge  callName = "partitioned-stats-age partitioned-stats"
	callInternalStats            callName = "internal-stats internalStats"
	callPartitionedInternalStats callName = "internal-stats partitioned-internalStats"
	callPosition                 callName = "position "
	callTopics                   callName = "topics "
	callPartitionedTopics        callName = "partitioned-topics partitioned"
	callComponent                callName = "component "
	callComponentStatus          callName = "component-status status"
	callParallelism              callName = "parallelism "
	callLookup                   callName = "lookup "
	// callSubscribe goes to the broker of a topic, in the binary protocol.
	callSubscribe callName = "subscribe "
)

func (c callName) label() string {
	label, _, _ := strings.Cut(string(c), " ")
	return label
}

func (c callName) path() string {
	_, path, _ := strings.Cut(string(c), " ")
	return path
}

func statsCall(partitioned, age bool) callName {
	switch {
	case partitioned && age:
		return callPartitionedStatsWithAge
	case partitioned:
		return callPartitionedStats
	case age:
		return callStatsWithAge
	default:
		return callStats
	}
}

// readsStorage reports whether the call needs the broker's storage.
func (c callName) readsStorage() bool {
	return c == callStatsWithAge || c == callPartitionedStatsWithAge || c == callPosition
}

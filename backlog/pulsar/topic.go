// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// address is where a topic's state is read.
type address struct {
	topic backlog.Topic
	// base is the admin URL without a path.
	base *url.URL
	// path is the escaped path of the topic's resource.
	path string
}

// newAddress checks the admin URL and the name, which both come from users.
func newAddress(topic backlog.Topic) (address, error) {
	plain, err := backlog.ParseAdminURL(topic.Cluster.AdminURL)
	if err != nil {
		return address{}, badAdminURL()
	}
	base, err := url.Parse(plain)
	if err != nil {
		return address{}, badAdminURL()
	}
	path, err := topicPath(topic.Name)
	if err != nil {
		return address{}, err
	}
	return address{topic: topic, base: base, path: path}, nil
}

// resource is the URL of a call on the topic.
func (a address) resource(call callName, query string) string {
	resource := a.base.Scheme + "://" + a.base.Host + a.path + "/" + call.path()
	if query != "" {
		resource += "?" + query
	}
	return resource
}

// namedEntity is what Pulsar allows in names of tenants and namespaces.
//
// Source: org.apache.pulsar.common.naming.NamedEntity.
var namedEntity = regexp.MustCompile(`^[-=:.\w]+$`)

// topicPath maps persistent://tenant/namespace/name to /admin/v2/persistent/tenant/namespace/name. Pulsar decodes the
// name with Java's URLDecoder, for which url.QueryEscape is the counterpart (a "+" is a space there).
func topicPath(name string) (string, error) {
	domain, rest, found := strings.Cut(name, "://")
	if !found {
		return "", badTopicName(name)
	}
	switch domain {
	case "persistent":
	case "non-persistent":
		return "", nonPersistent(name)
	default:
		return "", badTopicName(name)
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 || parts[2] == "" {
		return "", badTopicName(name)
	}
	for i, part := range parts {
		// "." and ".." are steps in a path, and would lead to another resource
		if part == "." || part == ".." || (i < 2 && !namedEntity.MatchString(part)) {
			return "", badTopicName(name)
		}
	}
	return "/admin/v2/persistent/" + parts[0] + "/" + parts[1] + "/" + url.QueryEscape(parts[2]), nil
}

// namespace is the tenant/namespace of a complete topic name.
func namespace(topic string) string {
	_, rest, _ := strings.Cut(topic, "://")
	return rest[:max(0, strings.LastIndexByte(rest, '/'))]
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package authparams decodes authPlugin and authParams of Pulsar's client.conf.
//
// Layer 0, pure: it reads no file and uses no network. The controllers use it to find files in the pods of a function,
// backlog/pulsar/auth uses it to authenticate. Its errors never repeat a value of the parameters, which may be secret.
package authparams

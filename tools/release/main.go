// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "directory of the git checkout")
	dist := flags.String("out", "dist", "directory to write; what it holds is removed")
	version := flags.String("version", "", "version to release, such as v1.2.3; without one, only images are built")
	only := flags.String("platform", "", "platform to build images for alone, such as linux-amd64; not for a release")
	program := flags.String("program", "", "program to build the image of alone, such as adapter; not for a release")
	registry := flags.String("registry", "",
		"registry and path of the images, for the chart and -push, such as registry.example.org/pulsar-autoscaler")
	pushed := flags.Bool("push", false, "push the images that the chart deploys, and write its values (images.yaml)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := release{
		root: *root, dist: *dist, version: *version, only: *only, program: *program,
		registry: strings.TrimSuffix(*registry, "/"), pushed: *pushed, out: out,
	}
	return r.run(ctx)
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command release builds what users install: the programs for every platform, their images without a container engine,
// and, for a version, everything that belongs to a release. The same commit gives the same bytes: nothing of the
// machine, of the clock or of the environment gets in.
//
//	build.go     the programs, and what the Go toolchain wrote into them
//	base.go      the files of an image beside the program
//	image.go     an OCI image of a program for all platforms
//	push.go      the images into a registry, and values of the chart that name them
//	sbom.go      what a binary is made of: its modules
//	npm.go       and the packages of npm that are embedded
//	krew.go      archives of the plugin of kubectl, and the manifest by which krew installs it
//	artifacthub.go  and the scaler as a package of Artifact Hub
//	notes.go     the section of the changelog
//	release.go   all of it, with checksums
package main

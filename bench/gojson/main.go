// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gojson:", err)
		os.Exit(1)
	}
}

// run is the whole program. It writes nothing when it fails.
func run(in io.Reader, out io.Writer) error {
	parsed, err := parse(in)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(summarize(parsed)); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

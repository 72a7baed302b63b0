// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// materials is the software bill of materials of a binary, as CycloneDX: the modules that the linker took, as the
// toolchain wrote them down, its standard library, and the packages of npm of which files are embedded.
func materials(b binary) ([]byte, error) {
	executable, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	committed, err := b.committed()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(executable)
	main := moduleComponent(&b.info.Main)
	main.Type, main.Name = cdx.ComponentTypeApplication, b.program
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	library := strings.TrimPrefix(b.info.GoVersion, "go")
	components := []cdx.Component{moduleComponent(&debug.Module{Path: "stdlib", Version: library})}
	references := []string{components[0].BOMRef}
	for _, dependency := range b.info.Deps {
		component := moduleComponent(dependency)
		components, references = append(components, component), append(references, component.BOMRef)
	}
	for _, library := range b.libraries {
		components, references = append(components, library), append(references, library.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: committed.Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &references}}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing the bill of materials of %s: %w", b.name(), err)
	}
	return out.Bytes(), nil
}

func moduleComponent(module *debug.Module) cdx.Component {
	if module.Replace != nil {
		module = module.Replace
	}
	reference := packageURL(module.Path, module.Version)
	component := cdx.Component{
		BOMRef: reference, Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: reference,
	}
	if module.Sum != "" { // of the module's files, as in go.sum: no hash that CycloneDX knows
		component.Properties = &[]cdx.Property{{Name: "go:sum", Value: module.Sum}}
	}
	return component
}

// packageURL writes a module as purl-spec does: in lower case, and with the + of a version escaped.
func packageURL(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Bundle checks an OLM bundle as "operator-sdk bundle validate --select-optional name=operatorhubv2" does, and as that
// does for good practices, categories and capabilities: bundle DIRECTORY.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bundle DIRECTORY")
		os.Exit(1)
	}
	if err := validate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// validate returns all errors and warnings.
func validate(directory string) (err error) {
	bundle, err := manifests.GetBundleFromDir(directory)
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}
	objects := []any{bundle, bundle.CSV}
	for _, crd := range bundle.V1CRDs {
		objects = append(objects, crd)
	}
	for _, object := range bundle.Objects {
		objects = append(objects, object)
	}
	validators := validator.Validators{
		validation.BundleValidator, validation.ClusterServiceVersionValidator,
		validation.CustomResourceDefinitionValidator, validation.ObjectValidator, validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator,
		validation.GoodPracticesValidator, validation.AlphaDeprecatedAPIsValidator,
	}
	for _, result := range validators.Validate(objects...) {
		for _, problem := range append(result.Errors, result.Warnings...) {
			err = errors.Join(err, problem)
		}
	}
	return err
}

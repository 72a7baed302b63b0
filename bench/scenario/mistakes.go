// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mistakes are unknown keys, with those that are known there, and values of another type, with the type and its unit:
// that of tag "unit". path is of the value, empty for the whole.
func mistakes(path string, value any, of reflect.Type, unit string) []error {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if value == nil { // absent
		return nil
	}
	var isRight bool
	var want string
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[metav1.Duration]():
		text, _ := value.(string)
		_, err := time.ParseDuration(text)
		isRight, want = err == nil, "a duration with its unit, such as 500ms, 30s or 5m"
	case kind == reflect.Struct:
		if fields, isObject := value.(map[string]any); isObject {
			return mistakesOf(path, fields, of)
		}
		isRight, want = false, "an object with the fields "+strings.Join(keys(of), ", ")
	case kind == reflect.Slice:
		if list, isList := value.([]any); isList {
			var all []error
			for i, element := range list {
				all = append(all, mistakes(fmt.Sprintf("%s[%d]", path, i), element, of.Elem(), unit)...)
			}
			return all
		}
		isRight, want = false, "a list"
	case kind == reflect.String:
		_, isRight = value.(string)
		want = "text"
	case kind == reflect.Float64:
		_, isRight = value.(float64)
		want = "a number" + unit
	default:
		number, isNumber := value.(float64)
		isRight, want = isNumber && number == math.Trunc(number), "a whole number"+unit
	}
	if isRight {
		return nil
	}
	text, _ := json.Marshal(value) // it was decoded from JSON
	return []error{fmt.Errorf("%s is %s: it must be %s", path, text, want)}
}

func mistakesOf(path string, fields map[string]any, of reflect.Type) (all []error) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		field, known := fieldOf(of, key)
		if !known {
			all = append(all, fmt.Errorf("unknown field %q: the fields there are %s", at, strings.Join(keys(of), ", ")))
			continue
		}
		unit := field.Tag.Get("unit")
		if unit != "" {
			unit = " of " + unit
		}
		all = append(all, mistakes(at, fields[key], field.Type, unit)...)
	}
	return all
}

// fieldOf finds the field of a key.
func fieldOf(of reflect.Type, key string) (field reflect.StructField, known bool) {
	for i := range of.NumField() {
		if field = of.Field(i); key != "" && keyOf(field) == key {
			return field, true
		}
	}
	return field, false
}

// keys of a struct, in its order.
func keys(of reflect.Type) (all []string) {
	for i := range of.NumField() {
		if key := keyOf(of.Field(i)); key != "" {
			all = append(all, key)
		}
	}
	return all
}

// keyOf is the key of a field; empty for none.
func keyOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

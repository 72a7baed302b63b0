{{- define "gvList" -}}
# API reference

<!-- Generated from api/v1alpha1 by make generate. Do not edit. -->

All fields of both kinds, in the words of `kubectl explain pap.spec`. [Examples](../examples) has manifests,
[Targets](targets.md) and [Actuators](actuators.md) explain the choices, and [Status](status.md) the conditions.

A field of a spec says its unit, its limits and its default, or that it is required. The API server refuses unknown
values and what breaks a rule. `Duration` is a text such as `30s`, `Quantity` a number such as `100`, `2.5` or `2500m`,
and `Time` a date with time.
{{ range . }}
{{- template "gvDetails" . }}
{{- end }}
{{- end -}}

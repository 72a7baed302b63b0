{{- /* type is what a type is, its fields or values, and its rules. Links to types of Kubernetes are left out. */ -}}
{{- define "type" }}
{{- range splitList "\n\n" .Doc }}
{{ . | replace "\n" " " | trim | wrap 120 }}
{{ end }}
{{- if .Members }}
{{ range .Members }}
{{- $type := regexReplaceAll "\\[([^]]+)\\]\\(https?://[^)]*\\)" (markdownRenderType .Type) "${1}" }}
{{- $type = regexReplaceAll "^object \\(keys:string, values:(.*)\\)$" $type "map of ${1}" }}
{{- template "item" (printf "`%s` (%s)%s" .Name $type (trimPrefix .Name .Doc)) }}
{{- end }}
{{- end }}
{{- if .EnumValues }}
{{ range .EnumValues }}
{{- template "item" (printf "`%s` %s" .Name (regexReplaceAll "^\\w+ " .Doc "")) }}
{{- end }}
{{- end }}
{{- with index .Markers "kubebuilder:validation:XValidation" }}
Rules:

{{ range . }}
{{- template "item" .Message }}
{{- end }}
{{- end }}
{{- end }}

{{- /* item of a list. A line that begins with a number and a point would be a list of its own. */ -}}
{{- define "item" }}
{{- $lines := . | replace "\n" " " | trim | wrap 118 | replace "\n" "\n  " }}- {{ regexReplaceAll "(?m)^  (\\d+)\\. " $lines "  ${1}\\. " }}
{{ end }}

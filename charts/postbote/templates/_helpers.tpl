{{/* Renders nothing. Refuses a release whose objects Kubernetes would refuse, each in its own words and one after the other. */}}
{{- define "postbote.checkName" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,50}[a-z0-9])?$" .Release.Name) }}
{{- fail (printf "release name %q: expected at most 52 letters a to z, digits and hyphens, the first one a letter, because services and pods get it" .Release.Name) }}
{{- end }}
{{- end }}

{{- define "postbote.labels" -}}
app.kubernetes.io/name: postbote
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "postbote.secretName" -}}
{{ .Values.existingSecret | default .Release.Name }}
{{- end }}

{{/* How the private API is reached: its probes, commands and monitors use the same. */}}
{{- define "postbote.privateScheme" -}}
{{ ternary "https" "http" (ne .Values.tls.privateSecret "") }}
{{- end }}

{{- define "postbote.botsScheme" -}}
{{ ternary "https" "http" (ne .Values.tls.botsSecret "") }}
{{- end }}

{{/* What the server and the test have in common: few rights, and the image. */}}
{{- define "postbote.pod" -}}
# The variables of a service named postbote, such as POSTBOTE_PORT, would be taken for unknown options.
enableServiceLinks: false
automountServiceAccountToken: false
imagePullSecrets: {{ range .Values.image.pullSecrets }}{{ dict "name" . | list | toYaml | nindent 2 }}{{ else }}[]{{ end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "postbote.container" -}}
image: {{ printf "%s:%s" .Values.image.repository .Values.image.tag | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

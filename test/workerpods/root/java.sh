#!/bin/sh
# java as a pod's command calls it: a container has all ports and a gigabyte for itself, processes here have not. All other
# arguments stay as they are.
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  case $argument in
    --port) value=$INSTANCE_PORT ;;
    --metrics_port) value=$INSTANCE_METRICS_PORT ;;
    --nar_extraction_directory) value=$INSTANCE_TMP ;;
    -Dlog4j.configurationFile=*) set -- "$@" "-Dlog4j.configurationFile=$INSTANCE_LOG" && continue ;;
    -Xmx*) set -- "$@" -Xmx128m && continue ;;
    *) set -- "$@" "$argument" && continue ;;
  esac
  shift
  left=$((left - 1))
  set -- "$@" "$argument" "$value"
done
# shellcheck disable=SC2086 # flags have no blanks
exec "$INSTANCE_JAVA" $INSTANCE_FLAGS "$@"

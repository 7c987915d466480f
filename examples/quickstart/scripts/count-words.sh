#!/bin/sh
# Counts words file by file, and tells how far it is.
done=0
total=$#
words=0
for file in "$@"; do
  n=$(wc -w < "$file") || exit 2
  words=$((words + n))
  done=$((done + 1))
  echo "$done/$total $file" > "$TASKFERRY_PROGRESS"
  echo "counted $file" >&2
  sleep "${PAUSE:-0.4}"
done
echo "{\"files\": $total, \"words\": $words}"

# Asks once if it is told to, and ends as it is told to: by files that are named after the run's key.
cd "$CONTROL" || exit 2
while :; do
  if [ -e "$TASKFERRY_KEY.ask" ]; then
    rm "$TASKFERRY_KEY.ask"
    printf '%s' '{"message":"Which note?","schema":{"type":"object","properties":{"note":{"type":"string"}}}}' \
      > "$TASKFERRY_QUESTIONS/note.json"
  fi
  if [ -e "$TASKFERRY_KEY.value" ]; then cat "$TASKFERRY_KEY.value"; exit 0; fi
  if [ -e "$TASKFERRY_KEY.error" ]; then cat "$TASKFERRY_KEY.error" >&2; exit 1; fi
  sleep 0.05
done

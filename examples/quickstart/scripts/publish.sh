#!/bin/sh
# Asks before it goes on. $TASKFERRY_ASK prints the accepted answer as JSON; its exit status tells a refusal.
answer=$("$TASKFERRY_ASK" --schema '{
  "type": "object",
  "properties": { "version": { "type": "string", "description": "For example 1.2.0" } },
  "required": ["version"]
}' "Publish $1? Under which version?") || { echo "kept $1 unpublished"; exit 1; }
echo "published $1: $answer"

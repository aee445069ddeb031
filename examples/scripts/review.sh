#!/bin/sh
# Lets members of a team review the changes of a branch, for scripts: the answer on stdout, what happened in the exit code.
# Only these members answer (--only). To let them hand over, bound the run instead: --turns 4
#   review.sh [NAMES] [BASE]      such as: review.sh max,carol main
# Exit codes: 0 reviewed, 1 a member failed or nothing came, 2 nothing to review, 9 a person is asked, 75 try again later.
set -u
names=${1:-max}
base=${2:-HEAD}
changes=$(git diff "$base") || exit 2
[ -n "$changes" ] || { echo "nothing to review" >&2; exit 2; }

printf '%s\n' "$changes" |
  teamchat send --new --only --json --to "$names" --timeout 10m \
    "Review these changes. Name bugs only, worst first." - > review.jsonl
code=$?
case $code in
  0) ;;
  9) echo "a person is asked, so the review is not complete" >&2 ;;
  3 | 7 | 8) echo "stopped: $(jq -r 'select(.type == "result") | .reason' review.jsonl)" >&2; exit 75 ;;
  11) echo "an agent CLI is missing or not logged in; see: teamchat team" >&2; exit 1 ;;
  *) echo "the review failed with code $code" >&2; exit 1 ;;
esac

jq -r 'select(.type == "message" and .kind == "ai") | "## \(.from)\n\n\(.text)\n"' review.jsonl
jq -r 'select(.type == "result") | "tokens: \(.usage.input_tokens // "unknown") in, \(.usage.output_tokens // "unknown") out"' \
  review.jsonl >&2
exit $code

#!/bin/sh
# Copies binaries to a folder without their debug information, which goes to a file beside each: FOLDER/muster and
# FOLDER/muster.debug. Names of functions stay in the binary. Prints what each file takes.
#
#   image/strip.sh FOLDER BINARY...
#
# A binary names its file: a debugger, and a backtrace of the binary itself, finds it where it lies beside the binary,
# and tells by the checksum whether it is the right one.
set -eu
[ $# -ge 2 ] || { sed -n '5s/^# *//p' "$0" >&2; exit 2; }
folder=$1
shift
mkdir -p "$folder"
for binary in "$@"; do
    name=$(basename "$binary")
    objcopy --only-keep-debug --compress-debug-sections "$binary" "$folder/$name.debug"
    chmod -x "$folder/$name.debug"
    # The path that is recorded is the file's name alone.
    (
        binary=$(cd "$(dirname "$binary")" && pwd)/$name
        cd "$folder"
        objcopy --strip-debug --add-gnu-debuglink="$name.debug" "$binary" "$name"
    )
    for file in "$name" "$name.debug"; do
        printf '%-28s %6d KB\n' "$file" "$(($(wc -c < "$folder/$file") / 1000))"
    done
done

#!/bin/sh
# Names the source lines of a backtrace that a stripped binary printed with RUST_BACKTRACE=full.
#
#   image/lines.sh muster-controller.debug < backtrace
#
# The file must be of the same build. Simpler, where the crash can be repeated: with the file beside the binary, under the
# name that it has, the binary prints the lines itself.
set -eu
[ $# -eq 1 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 2; }
debug=$1
frames=$(sed -nE 's/^ *[0-9]+: +0x([0-9a-f]+) - (.*)$/\1 \2/p')
symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
nm -S --defined-only "$debug" > "$symbols"

# A binary is loaded at a page of the system's choice: of a function smaller than a page, the address tells which.
base=$(echo "$frames" | while read -r address name; do
    case $name in
    *::h????????????????) mangled=17h${name##*::h}E ;;
    main) mangled=' main$' ;;
    *) continue ;;
    esac
    symbol=$(grep -m 1 -e "$mangled" "$symbols") || continue
    start=0x${symbol%% *} size=${symbol#* }
    size=0x${size%% *}
    [ $((size)) -lt 4096 ] || continue
    echo $(((0x$address - start) & ~4095))
    break
done)
[ -n "$base" ] || { echo "error: no frame of the backtrace is a function of $debug" >&2; exit 1; }

echo "$frames" | while read -r address _; do
    # The address is where a call returns to; the call is before it.
    at=$((0x$address - base - 1))
    [ $at -lt 0 ] || addr2line -Cfipe "$debug" "$(printf %x $at)"
done

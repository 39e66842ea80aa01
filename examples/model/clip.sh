#!/bin/sh
# usage: clip.sh FILE.mp4: a clip to try the archive on: a signal tower, red from the start, green
# from 2 s on, blue as well from 3 s on, all dark from 5 s on. FILE.truth.jsonl beside it says what
# is in each frame, for score.py.
set -eu
truth="${1%.mp4}.truth.jsonl"
filters="format=rgb24"
: > "$truth"
lamp() { # class, colour, top, first frame, last frame
    filters="$filters,drawbox=x=140:y=$3:w=40:h=40:color=$2:t=fill:enable='between(n,$4-1,$5-1)'"
    for frame in $(seq "$4" "$5"); do
        echo "{\"frame\":$frame,\"class\":\"$1\",\"box\":[140,$3,40,40]}" >> "$truth"
    done
}
lamp red red 20 1 30
lamp green lime 70 31 75
lamp blue blue 120 46 75
ffmpeg -nostdin -v error -y -f lavfi -i color=0x404040:s=320x192:r=15:d=6 \
    -vf "$filters,format=yuv420p" -an -c:v libx264 -preset veryfast "$1"

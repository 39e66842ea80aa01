#!/bin/sh
# usage: clip.sh FILE: a clip to try the archive on: a signal tower, red from the start, green from
# 2 s on, blue as well from 3 s on, all dark from 5 s on.
set -eu
lamp() {
    echo "drawbox=x=140:y=$1:w=40:h=40:color=$2:t=fill:enable='between(t,$3,$4)'"
}
ffmpeg -nostdin -v error -y -f lavfi -i color=0x404040:s=320x192:r=15:d=6 \
    -vf "format=rgb24,$(lamp 20 red 0 1.99),$(lamp 70 lime 2 4.99),$(lamp 120 blue 3 4.99),format=yuv420p" \
    -an -c:v libx264 -preset veryfast "$1"

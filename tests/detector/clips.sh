#!/bin/sh
# usage: clips.sh FOLDER: test clips, by ffmpeg: on grey, a red rectangle that moves to the right, a
# green one that moves down and a blue one that moves to the left, so that what is where is known
# for every frame. All are 3 s of 15 frames a second, a key picture every second.
set -eu
folder=$1
mkdir -p "$folder"
cd "$folder"

# paint SIZE OUTPUT FILTER [OPTION...]
paint() {
    size=$1
    output=$2
    last=$3
    shift 3
    ffmpeg -nostdin -v error -y \
        -f lavfi -i "color=c=0x404040:s=$size:r=15:d=3" \
        -f lavfi -i "color=c=red:s=60x40:r=15:d=3" \
        -f lavfi -i "color=c=lime:s=40x50:r=15:d=3" \
        -f lavfi -i "color=c=blue:s=30x30:r=15:d=3" \
        -filter_complex "[0][1]overlay=x='10+t*60':y=20[a];[a][2]overlay=x=140:y='80+t*30'[b];[b][3]overlay=x='280-t*70':y=190,$last" \
        -an -threads 1 -bitexact "$@" "$output"
}

x264="-c:v libx264 -preset veryfast -g 15 -keyint_min 15 -sc_threshold 0"
# shellcheck disable=SC2086
{
    paint 320x240 rects.mp4 null $x264 -tune zerolatency -pix_fmt yuv420p
    paint 320x240 bframes.mp4 null $x264 -bf 3 -pix_fmt yuv420p
    paint 320x240 full_range.mp4 null $x264 -tune zerolatency -pix_fmt yuvj420p -color_range pc
    paint 322x242 odd.mp4 format=yuv444p,crop=321:241:0:0:exact=1 $x264 -tune zerolatency -pix_fmt yuv444p
    paint 480x270 larger.mp4 null $x264 -tune zerolatency -pix_fmt yuv420p
    paint 320x240 rects265.mp4 null -c:v libx265 -preset ultrafast -g 15 -pix_fmt yuv420p \
        -x265-params log-level=none:pools=1:keyint=15:min-keyint=15
    paint 320x240 mjpeg.avi null -c:v mjpeg -q:v 4 -pix_fmt yuvj422p -color_range pc
}
# Access units that begin with a delimiter, for a server that loops them.
for name in rects larger; do
    ffmpeg -nostdin -v error -y -i $name.mp4 -c copy \
        -bsf:v h264_mp4toannexb,h264_metadata=aud=insert -f h264 $name.h264
done
ffmpeg -nostdin -v error -y -i rects.mp4 -c copy -f mpegts rects.ts
ffmpeg -nostdin -v error -y -i rects265.mp4 -c copy \
    -bsf:v hevc_mp4toannexb,hevc_metadata=aud=insert -f hevc rects265.h265
ffmpeg -nostdin -v error -y -i rects.mp4 -c:v mjpeg -q:v 4 -huffman default -pix_fmt yuvj420p -f mjpeg rects.mjpeg
for name in rects:still larger:larger; do
    ffmpeg -nostdin -v error -y -i "${name%:*}.mp4" -frames:v 1 -q:v 3 "${name#*:}.jpg"
done
for format in 420 422 444; do
    ffmpeg -nostdin -v error -y -i odd.mp4 -frames:v 1 -q:v 3 -pix_fmt yuvj${format}p odd$format.jpg
done
# The picture changes its size in the middle.
cat rects.h264 larger.h264 > resized.h264
touch complete

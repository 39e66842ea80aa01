/* Opens, demuxes and decodes a stream or file with FFmpeg, and hands its frames to the publisher.
 * Every call of FFmpeg that waits has a deadline, which its interrupt callback checks. */
#ifndef DETECTOR_CAMERA_STREAM_H
#define DETECTOR_CAMERA_STREAM_H

#include "detector/camera/confine.h"
#include "detector/camera/publish.h"

#include <libavformat/avio.h>

/* `file` is the file of a file source, borrowed, since the process may not open it any more; else
 * NULL, and a broker connects for this process. It takes the second step of confine.h once no more
 * has to be opened, and ends the session with the camera. Returns 0 if the file has ended, or the
 * parent needs no more. No error names the URL. */
int stream_run(const struct camera_config *config, const struct confinement *confinement,
               AVIOContext *file, struct publisher *publisher, struct baton_error *reterr);

#endif

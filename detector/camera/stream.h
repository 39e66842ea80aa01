/* Opens, demuxes and decodes a stream or file with FFmpeg, and hands its frames to the publisher.
 *
 *   stream_open ─▶ stream_run (until the end, an error, or is_stopping) ─▶ stream_close
 *
 * Every call of FFmpeg that waits has a deadline, which its interrupt callback checks.
 */
#ifndef DETECTOR_CAMERA_STREAM_H
#define DETECTOR_CAMERA_STREAM_H

#include "detector/camera/publish.h"

#include <libavformat/avio.h>

struct stream; /* opaque */

/* `file` is the file of a file source, borrowed, since the process may not open it any more; else
 * NULL. No error names the URL. */
int stream_open(struct stream **ret, const struct camera_config *config, AVIOContext *file,
                struct publisher *publisher, struct baton_error *reterr);
/* Returns 0 if the file has ended, or the parent needs no more. */
int stream_run(struct stream *stream, struct baton_error *reterr);
void stream_close(struct stream *stream); /* ends the session with the camera; NULL allowed */

#endif

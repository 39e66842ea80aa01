/* A camera that gives single pictures, which are requested at the parent's interval. */
#ifndef DETECTOR_CAMERA_SNAPSHOT_H
#define DETECTOR_CAMERA_SNAPSHOT_H

#include "detector/camera/publish.h"

enum { SNAPSHOT_BYTES_MAX = 16 << 20 };

/* Returns 0 if the parent needs no more. No error names the URL. */
int snapshot_run(const struct camera_config *config, struct publisher *publisher,
                 struct baton_error *reterr);

#endif

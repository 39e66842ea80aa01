/* A camera that gives single pictures: fetched again and again, as often as the parent wants. */
#ifndef DETECTOR_CAMERA_SNAPSHOT_H
#define DETECTOR_CAMERA_SNAPSHOT_H

#include "detector/camera/publish.h"

enum { SNAPSHOT_BYTES_MAX = 16 << 20 };

/* 0: the parent wants no more. The URL stays out of every error. */
int snapshot_run(const struct camera_config *config, struct publisher *publisher,
                 struct baton_error *reterr);

#endif

/* The C interface of the shim around OpenCV's dnn: libbaton-opencv.so has one symbol,
 * `baton_opencv` of this type. No exception leaves it, and a net lives as long as the process. */
#ifndef DETECTOR_INFER_OPENCV_SHIM_H
#define DETECTOR_INFER_OPENCV_SHIM_H

#include "detector/infer/shape.h"

struct opencv_calls {
    const char *version;
    void *(*open)(const void *model, size_t bytes, int threads, char *error, size_t error_bytes);
    /* Returns the number of outputs, at most `max`, or a value below 0 with the reason in `error`.
     * Their numbers stay until the next run. */
    int (*run)(void *net, float *input, const struct shape *shape, struct tensor *outputs, int max,
               char *error, size_t error_bytes);
};

#endif

/* The C interface of the shim around OpenCV's dnn: libbaton-opencv.so has one symbol,
 * `baton_opencv` of this type. No exception leaves it. */
#ifndef DETECTOR_INFER_OPENCV_SHIM_H
#define DETECTOR_INFER_OPENCV_SHIM_H

#include <stddef.h>

enum { OPENCV_RANK_MAX = 8 };

struct opencv_output {
    const float *values; /* until the next run */
    const char *name;
    int rank;
    int sides[OPENCV_RANK_MAX];
};

struct opencv_calls {
    const char *version;
    void *(*open)(const void *model, size_t bytes, int threads, char *error, size_t error_bytes);
    /* Returns the number of outputs, at most `max`, or a value below 0 with the reason in `error`.
     */
    int (*run)(void *net, float *input, int rank, const int *sides, struct opencv_output *outputs,
               int max, char *error, size_t error_bytes);
    void (*close)(void *net);
};

#endif

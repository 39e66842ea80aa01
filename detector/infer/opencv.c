/* The library OpenCV dnn. */
#include "detector/infer/library.h"
#include "detector/infer/opencv_shim.h"

#include <dlfcn.h>
#include <stdio.h>

enum { OPENCV_ERROR_MAX = 300 };

static const struct opencv_calls *calls;

/* OpenCV's own text is the longest part and stands last: callers cut the end off a long message. */
static int fail(const struct network *network, const char *what, const char *text,
                struct baton_error *reterr)
{
    return error_set(reterr, BATON_EINVAL,
                     "%s cannot %s, ONNX Runtime may ('make deps-onnxruntime' fetches it): %s",
                     network->library->name, what, text);
}

static int opencv_run(struct network *network, int64_t pictures, struct tensor *ret,
                      struct baton_error *reterr)
{
    struct shape shape = network->input;
    char error[OPENCV_ERROR_MAX] = "";
    size_t numbers;
    int count;

    shape.sides[0] = pictures;
    count = calls->run(network->own, network->values, &shape, ret, SESSION_OUTPUTS_MAX, error,
                       sizeof(error));
    if (count < 0) {
        return fail(network, "run the model", error, reterr);
    }
    for (int i = 0; i < count; i++) {
        if (!shape_numbers(&ret[i].shape, &numbers)) {
            return fail(network, "run the model", "an output without numbers", reterr);
        }
    }
    return count;
}

/* OpenCV does not say whether a model takes more than one picture, and knows only after a run that
 * it can be run. */
static int opencv_open(struct network *network, const void *bytes, size_t count,
                       struct baton_error *reterr)
{
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    char error[OPENCV_ERROR_MAX] = "";
    int code;

    network->input.sides[0] = 1;
    network->own = calls->open(bytes, count, network->library->threads, error, sizeof(error));
    if (!network->own) {
        return fail(network, "read the model", error, reterr);
    }
    code = opencv_run(network, 1, outputs, reterr);
    return code < 0 ? code : 0;
}

int opencv_load(struct library **ret, const struct library_options *options,
                struct baton_error *reterr)
{
    static const char *const names[] = {"libbaton-opencv.so", NULL};
    static struct library opencv = {.open = opencv_open, .run = opencv_run};
    void *library;
    int code = library_find(&library, names, options->path, reterr);

    if (code) {
        error_wrap(reterr, "OpenCV");
        return code;
    }
    calls = dlsym(library, "baton_opencv");
    if (!calls) {
        return error_set(reterr, BATON_ENOENT, "OpenCV: %s: is not Baton's", names[0]);
    }
    (void)snprintf(opencv.name, sizeof(opencv.name), "opencv %s", calls->version);
    *ret = &opencv;
    return 0;
}

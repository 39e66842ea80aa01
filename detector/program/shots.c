#include "detector/program/shots.h"

#include "base/error.h"
#include "detector/program/canvas.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct shots {
    const char *folder;
    struct picture_scaler *scaler;
    uint64_t count; /* of frames with reports */
};

struct shots *shots_new(const char *folder)
{
    struct shots *shots = calloc(1, sizeof(*shots));

    if (shots) {
        shots->folder = folder;
        shots->scaler = picture_scaler_new();
        if (!shots->scaler) {
            free(shots);
            return NULL;
        }
    }
    return shots;
}

void shots_free(struct shots *shots)
{
    if (shots) {
        picture_scaler_free(shots->scaler);
        free(shots);
    }
}

static bool has_report(const struct inference_result *result)
{
    for (int i = 0; i < result->count; i++) {
        if (result->sightings[i].attributes) {
            return true;
        }
    }
    return false;
}

static int write_shot(const char *path, const struct canvas *canvas, struct baton_error *reterr)
{
    FILE *file = fopen(path, "wbe");
    int code;

    if (!file) {
        int errnum = errno;
        return error_set(reterr, error_from_errno(errnum), "%s: %s", path, strerror(errnum));
    }
    code = canvas_write(canvas, file, path, reterr);
    (void)fclose(file);
    return code;
}

int shots_add(struct shots *shots, const struct inference_result *result,
              struct baton_error *reterr)
{
    struct canvas canvas = {0};
    char path[PATH_MAX];
    int code;

    if (!has_report(result) || ++shots->count > SHOTS_MAX) {
        return 0;
    }
    (void)snprintf(path, sizeof(path), "%s/frame-%06llu.png", shots->folder,
                   (unsigned long long)result->frame->number);
    code = canvas_show(&canvas, shots->scaler, result, 0, reterr);
    code = code ? code : write_shot(path, &canvas, reterr);
    canvas_free(&canvas);
    return code;
}

uint64_t shots_left_out(const struct shots *shots)
{
    return shots->count > SHOTS_MAX ? shots->count - SHOTS_MAX : 0;
}

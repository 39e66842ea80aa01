#include "detector/infer/shape.h"

#include <inttypes.h>
#include <stdio.h>

int64_t shape_numbers(const struct shape *shape)
{
    int64_t count = 1;
    bool is_empty = false;

    if (shape->rank < 0 || shape->rank > SHAPE_RANK_MAX) {
        return -1;
    }
    for (int i = 0; i < shape->rank; i++) {
        int64_t side = shape->sides[i];
        if (side < 0 || side > SHAPE_COUNT_MAX / count) {
            return -1;
        }
        is_empty = is_empty || side == 0;
        count *= side > 0 ? side : 1;
    }
    return is_empty ? 0 : count;
}

bool shape_fits(const struct shape *declared, const struct shape *given)
{
    if (declared->rank != given->rank) {
        return false;
    }
    for (int i = 0; i < declared->rank; i++) {
        if (declared->sides[i] > 0 && declared->sides[i] != given->sides[i]) {
            return false;
        }
    }
    return true;
}

const char *shape_text(const struct shape *shape, char text[SHAPE_TEXT_MAX])
{
    size_t at = 0;

    at += (size_t)snprintf(text, SHAPE_TEXT_MAX, "[");
    for (int i = 0; i < shape->rank && i < SHAPE_RANK_MAX; i++) {
        const char *comma = i > 0 ? ", " : "";
        if (shape->sides[i] < 1) {
            at += (size_t)snprintf(text + at, SHAPE_TEXT_MAX - at, "%s?", comma);
        } else {
            at += (size_t)snprintf(text + at, SHAPE_TEXT_MAX - at, "%s%" PRId64, comma,
                                   shape->sides[i]);
        }
    }
    (void)snprintf(text + at, SHAPE_TEXT_MAX - at, "]"); /* eight sides of 19 digits leave room */
    return text;
}

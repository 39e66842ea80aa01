#include "detector/infer/shape.h"

#include <inttypes.h>
#include <stdio.h>

bool shape_count(const struct shape *shape, size_t *ret)
{
    int64_t count = 1;

    if (shape->rank < 0 || shape->rank > SHAPE_RANK_MAX) {
        return false;
    }
    for (int i = 0; i < shape->rank; i++) {
        if (shape->sides[i] < 1 || shape->sides[i] > SHAPE_COUNT_MAX / count) {
            return false;
        }
        count *= shape->sides[i];
    }
    *ret = (size_t)count;
    return true;
}

bool shape_numbers(const struct shape *shape, size_t *ret)
{
    struct shape others = *shape;
    bool is_empty = false;
    size_t count;

    for (int i = 0; i < others.rank && i < SHAPE_RANK_MAX; i++) {
        is_empty = is_empty || others.sides[i] == 0;
        others.sides[i] += others.sides[i] == 0;
    }
    if (!shape_count(&others, &count)) {
        return false;
    }
    *ret = is_empty ? 0 : count;
    return true;
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

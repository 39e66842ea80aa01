#include "softbody/batch.h"

#include "base/crc32c.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x54464f53, VERSION = 1, BATCH = 1, BOUNDS = 2 }; /* "SOFT" */
enum { BOUNDS_ROW_BYTES = 8 * 7 };

static const double number_max = 1e6;

struct head {
    uint32_t scene, scene_bodies, rows;
    uint64_t frame;
};

/* ---- Writing --------------------------------------------------------------------------------- */

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void put_double(struct buffer *buffer, double value)
{
    buffer_put_u64(buffer, bits_of(value));
}

static void put_vec(struct buffer *buffer, struct vec vec)
{
    put_double(buffer, vec.x);
    put_double(buffer, vec.y);
}

static void put_head(struct buffer *buffer, uint16_t kind, const struct batch *batch, uint32_t rows)
{
    buffer_put_u32(buffer, MAGIC);
    buffer_put_u16(buffer, VERSION);
    buffer_put_u16(buffer, kind);
    buffer_put_u32(buffer, batch->scene);
    buffer_put_u32(buffer, batch->scene_bodies);
    buffer_put_u64(buffer, batch->frame);
    buffer_put_u32(buffer, rows);
}

static void put_sum(struct buffer *buffer, size_t begin)
{
    if (!buffer->failed) {
        buffer_put_u32(buffer, crc32c(0, buffer->data + begin, buffer->bytes - begin));
    }
}

void batch_put(const struct batch *batch, struct buffer *buffer)
{
    size_t begin = buffer->bytes;

    put_head(buffer, BATCH, batch, batch->count);
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct body *body = &batch->bodies[i];
        buffer_put_u32(buffer, body->id);
        put_double(buffer, body->half_width);
        put_double(buffer, body->half_height);
        for (uint32_t k = 0; k < BODY_NODES; k++) {
            put_vec(buffer, body->at[k]);
            put_vec(buffer, body->velocity[k]);
        }
    }
    put_sum(buffer, begin);
}

void batch_put_bounds(const struct batch *all, struct buffer *buffer)
{
    size_t begin = buffer->bytes;

    put_head(buffer, BOUNDS, all, all->count);
    for (uint32_t i = 0; i < all->count; i++) {
        struct bounds bounds;
        body_bounds(&all->bodies[i], &bounds);
        put_vec(buffer, bounds.center);
        put_vec(buffer, bounds.velocity);
        put_double(buffer, bounds.xx);
        put_double(buffer, bounds.xy);
        put_double(buffer, bounds.yy);
    }
    put_sum(buffer, begin);
}

/* FNV-1a, by words. */
uint64_t batch_hash(const struct batch *batch)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (uint32_t i = 0; i < batch->count; i++) {
        for (uint32_t k = 0; k < BODY_NODES; k++) {
            const struct body *body = &batch->bodies[i];
            const double values[] = {body->at[k].x, body->at[k].y, body->velocity[k].x,
                                     body->velocity[k].y};
            for (uint32_t j = 0; j < 4; j++) {
                hash = (hash ^ bits_of(values[j])) * 0x100000001b3u;
                hash ^= hash >> 32; /* a product's high bits would reach no low ones */
            }
        }
    }
    return hash;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A number that no scene has fails the reader, as an end that comes too early does. */
static double take_double(struct reader *reader)
{
    uint64_t bits = reader_u64(reader);
    double value;

    memcpy(&value, &bits, sizeof(value));
    reader->failed |= !(fabs(value) <= number_max); /* nor NaN */
    return value;
}

static struct vec take_vec(struct reader *reader)
{
    double x = take_double(reader);

    return (struct vec){x, take_double(reader)};
}

/* Checks the length, the sum and the head, so that only the rows can be wrong after it. */
static int take_head(struct reader *reader, uint16_t kind, size_t row_bytes, struct head *ret,
                     struct baton_error *reterr)
{
    const char *name = kind == BATCH ? "batch" : "bounds";
    struct reader sum = *reader;
    uint32_t magic = reader_u32(reader);
    uint16_t version = reader_u16(reader);
    uint16_t found = reader_u16(reader);

    ret->scene = reader_u32(reader);
    ret->scene_bodies = reader_u32(reader);
    ret->frame = reader_u64(reader);
    ret->rows = reader_u32(reader);
    if (reader->failed || magic != MAGIC || version != VERSION || found != kind) {
        return error_set(reterr, BATON_ECORRUPT, "%s: no %s of version %d", name, name, VERSION);
    }
    if (ret->scene_bodies > SCENE_BODIES_MAX || ret->rows > ret->scene_bodies ||
        (kind == BOUNDS && ret->rows != ret->scene_bodies) ||
        reader->bytes != ret->rows * row_bytes + 4) {
        return error_set(reterr, BATON_ECORRUPT,
                         "%s: %zu bytes behind the head for %u of %u bodies", name, reader->bytes,
                         ret->rows, ret->scene_bodies);
    }
    (void)reader_take(&sum, BATCH_HEAD_BYTES + ret->rows * row_bytes);
    if (reader_u32(&sum) !=
        crc32c(0, reader->data - BATCH_HEAD_BYTES, BATCH_HEAD_BYTES + ret->rows * row_bytes)) {
        return error_set(reterr, BATON_ECORRUPT, "%s: the sum is wrong", name);
    }
    return 0;
}

static bool take_body(struct reader *reader, struct body *ret)
{
    ret->id = reader_u32(reader);
    ret->half_width = take_double(reader);
    ret->half_height = take_double(reader);
    for (uint32_t i = 0; i < BODY_NODES; i++) {
        ret->at[i] = take_vec(reader);
        ret->velocity[i] = take_vec(reader);
    }
    return !reader->failed && ret->half_width > 0 && ret->half_height > 0;
}

int batch_take(struct batch *ret, const void *data, size_t bytes, struct baton_error *reterr)
{
    struct reader reader = reader_of(data, bytes);
    struct head head;
    int code = take_head(&reader, BATCH, BATCH_ROW_BYTES, &head, reterr);

    if (code != 0) {
        return code;
    }
    ret->scene = head.scene;
    ret->scene_bodies = head.scene_bodies;
    ret->frame = head.frame;
    ret->count = head.rows;
    for (uint32_t i = 0; i < head.rows; i++) {
        struct body *body = &ret->bodies[i];
        if (!take_body(&reader, body) || body->id >= head.scene_bodies ||
            (i > 0 && body->id <= body[-1].id)) {
            return error_set(reterr, BATON_ECORRUPT, "batch: row %u is no body of the scene", i);
        }
    }
    return 0;
}

static int take_bounds(struct bounds ret[static SCENE_BODIES_MAX], struct head *ret_head,
                       const void *data, size_t bytes, struct baton_error *reterr)
{
    struct reader reader = reader_of(data, bytes);
    int code = take_head(&reader, BOUNDS, BOUNDS_ROW_BYTES, ret_head, reterr);

    for (uint32_t i = 0; code == 0 && i < ret_head->rows; i++) {
        struct bounds *bounds = &ret[i];
        bounds->center = take_vec(&reader);
        bounds->velocity = take_vec(&reader);
        bounds->xx = take_double(&reader);
        bounds->xy = take_double(&reader);
        bounds->yy = take_double(&reader);
        if (reader.failed || !(bounds->xx * bounds->yy - bounds->xy * bounds->xy > 0)) {
            code = error_set(reterr, BATON_ECORRUPT, "bounds: row %u is no ellipse", i);
        }
    }
    return code;
}

/* ---- A step ---------------------------------------------------------------------------------- */

static int step(struct batch *batch, const void *bounds, size_t bounds_bytes, uint32_t frames,
                struct baton_error *reterr)
{
    struct bounds all[SCENE_BODIES_MAX];
    struct head head;
    int code = take_bounds(all, &head, bounds, bounds_bytes, reterr);

    if (code != 0) {
        return code;
    }
    if (head.scene != batch->scene || head.scene_bodies != batch->scene_bodies ||
        head.frame != batch->frame) {
        return error_set(reterr, BATON_ECONFLICT,
                         "the bounds of scene %u, frame %llu cannot move a batch of scene %u, "
                         "frame %llu",
                         head.scene, (unsigned long long)head.frame, batch->scene,
                         (unsigned long long)batch->frame);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        for (uint32_t age = 0; age < frames; age++) {
            body_step(&batch->bodies[i], all, head.rows, age);
        }
    }
    batch->frame += frames;
    return 0;
}

int softbody_step(const void *state, size_t state_bytes, const void *bounds, size_t bounds_bytes,
                  uint32_t frames, struct buffer *ret, struct baton_error *reterr)
{
    struct batch *batch;
    int code;

    if (frames < 1 || frames > STEP_FRAMES_MAX) {
        return error_set(reterr, BATON_EINVAL, "frames %u: must be 1 to %d", frames,
                         STEP_FRAMES_MAX);
    }
    batch = malloc(sizeof(*batch));
    if (!batch) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a batch");
    }
    code = batch_take(batch, state, state_bytes, reterr);
    code = code ? code : step(batch, bounds, bounds_bytes, frames, reterr);
    if (code == 0) {
        batch_put(batch, ret);
        code = ret->failed ? error_set(reterr, BATON_ENOMEM, "out of memory for a batch") : 0;
    }
    free(batch);
    return code;
}

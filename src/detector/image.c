#include "detector/image.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

struct picture {
    unsigned char *jpeg; /* of tjAlloc; NULL: not made yet */
    unsigned long bytes;
    int rect[4];
};

struct slot {
    char identifier[PROTOCOL_IDENTIFIER_MAX + 1];
    uint64_t number;
    int width, height;
    uint8_t *pixels; /* the three planes, one after the other */
    size_t capacity;
    struct picture whole, cropped;
};

struct image_store {
    struct slot *slots;
    size_t count, count_max;
    uint64_t puts;
    tjhandle compressor;
};

struct image_store *image_store_new(size_t count_max)
{
    struct image_store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }
    store->slots = calloc(count_max, sizeof(*store->slots));
    store->count_max = count_max;
    store->compressor = tjInitCompress();
    if (store->slots == NULL || store->compressor == NULL) {
        image_store_free(store);
        return NULL;
    }
    return store;
}

static void forget_pictures(struct slot *slot)
{
    tjFree(slot->whole.jpeg);
    tjFree(slot->cropped.jpeg);
    slot->whole = (struct picture){0};
    slot->cropped = (struct picture){0};
}

static void slot_fini(struct slot *slot)
{
    forget_pictures(slot);
    free(slot->pixels);
}

void image_store_free(struct image_store *store)
{
    if (store == NULL) {
        return;
    }
    for (size_t i = 0; i < store->count; i++) {
        slot_fini(&store->slots[i]);
    }
    free(store->slots);
    if (store->compressor != NULL) {
        (void)tjDestroy(store->compressor);
    }
    free(store);
}

static struct slot *find_slot(const struct image_store *store, const char *identifier)
{
    for (size_t i = 0; i < store->count; i++) {
        if (strcmp(store->slots[i].identifier, identifier) == 0) {
            return &store->slots[i];
        }
    }
    return NULL;
}

static uint8_t *copy_plane(uint8_t *to, const uint8_t *from, int stride, int width, int height)
{
    for (int y = 0; y < height; y++) {
        memcpy(to, from + (ptrdiff_t)stride * y, (size_t)width);
        to += width;
    }
    return to;
}

/* The slot of `identifier`, made if there is none, with room for a frame of that size. */
static struct slot *need_slot(struct image_store *store, const char *identifier,
                              const struct frame *frame)
{
    size_t chroma = (size_t)((frame->width + 1) / 2) * (size_t)((frame->height + 1) / 2);
    size_t bytes = (size_t)frame->width * (size_t)frame->height + 2 * chroma;
    struct slot *slot = find_slot(store, identifier);
    bool is_new = slot == NULL;

    if (is_new) {
        if (store->count == store->count_max) {
            return NULL;
        }
        slot = &store->slots[store->count];
        *slot = (struct slot){0};
        (void)snprintf(slot->identifier, sizeof(slot->identifier), "%s", identifier);
    }
    if (slot->capacity < bytes) {
        uint8_t *larger = realloc(slot->pixels, bytes);
        if (larger == NULL) {
            return NULL;
        }
        slot->pixels = larger;
        slot->capacity = bytes;
    }
    store->count += is_new;
    return slot;
}

int image_put(struct image_store *store, const char *identifier, const struct frame *frame,
              struct baton_error *reterr)
{
    int chroma_width = (frame->width + 1) / 2;
    int chroma_height = (frame->height + 1) / 2;
    struct slot *slot;
    uint8_t *at;

    if (frame->width < 1 || frame->height < 1 || frame->width > IMAGE_PIXELS_MAX ||
        frame->height > IMAGE_PIXELS_MAX) {
        return error_set(reterr, BATON_EINVAL, "frame of %dx%d: sides must be 1 to %d",
                         frame->width, frame->height, IMAGE_PIXELS_MAX);
    }
    slot = need_slot(store, identifier, frame);
    if (slot == NULL) {
        return error_set(reterr, BATON_EFULL, "no room for a frame of \"%s\"", identifier);
    }
    forget_pictures(slot);
    slot->number = ++store->puts;
    slot->width = frame->width;
    slot->height = frame->height;
    at = copy_plane(slot->pixels, frame->plane[0], frame->stride[0], frame->width, frame->height);
    at = copy_plane(at, frame->plane[1], frame->stride[1], chroma_width, chroma_height);
    (void)copy_plane(at, frame->plane[2], frame->stride[2], chroma_width, chroma_height);
    return 0;
}

void image_remove(struct image_store *store, const char *identifier)
{
    struct slot *slot = find_slot(store, identifier);
    struct slot *last;

    if (slot == NULL) {
        return;
    }
    slot_fini(slot);
    last = &store->slots[--store->count];
    if (slot != last) {
        *slot = *last;
    }
}

/* One axis: the even begin and the length from low to high within 0 … size. */
static void crop_axis(bool has_low, int low, bool has_high, int high, int size, int *begin,
                      int *length)
{
    int end = has_high && high < size ? high : size;

    *begin = has_low ? low : 0;
    *begin = *begin > size - 2 ? (size > 2 ? size - 2 : 0) : *begin;
    *begin -= *begin % 2;
    *length = end - *begin;
    if (*length < 2) {
        *length = size - *begin < 2 ? size - *begin : 2;
    }
}

void image_crop_rect(const struct crop *crop, int width, int height, int rect[4])
{
    unsigned given = crop->given;

    crop_axis(given & 1u << CROP_X1, crop->at[CROP_X1], given & 1u << CROP_X2, crop->at[CROP_X2],
              width, &rect[0], &rect[2]);
    crop_axis(given & 1u << CROP_Y1, crop->at[CROP_Y1], given & 1u << CROP_Y2, crop->at[CROP_Y2],
              height, &rect[1], &rect[3]);
}

/* A crop is an offset into the planes: nothing is copied. */
static int compress(struct image_store *store, const struct slot *slot, struct picture *picture,
                    struct baton_error *reterr)
{
    int chroma = (slot->width + 1) / 2;
    const int *rect = picture->rect;
    int strides[3] = {slot->width, chroma, chroma};
    const uint8_t *u = slot->pixels + (size_t)slot->width * (size_t)slot->height;
    const uint8_t *v = u + (size_t)chroma * (size_t)((slot->height + 1) / 2);
    ptrdiff_t half = (ptrdiff_t)(rect[1] / 2) * chroma + rect[0] / 2;
    const unsigned char *planes[3] = {slot->pixels + (ptrdiff_t)rect[1] * slot->width + rect[0],
                                      u + half, v + half};

    if (tjCompressFromYUVPlanes(store->compressor, planes, rect[2], strides, rect[3], TJSAMP_420,
                                &picture->jpeg, &picture->bytes, IMAGE_QUALITY, 0) != 0) {
        return error_set(reterr, BATON_EIO, "JPEG of %dx%d: %s", rect[2], rect[3],
                         tjGetErrorStr2(store->compressor));
    }
    return 0;
}

int image_jpeg(struct image_store *store, const char *identifier, const struct crop *crop,
               struct image *image, struct baton_error *reterr)
{
    static const struct crop all = {0};
    struct slot *slot = find_slot(store, identifier);
    struct picture *picture;
    int rect[4];
    int rc;

    if (slot == NULL) {
        return error_set(reterr, BATON_ENOENT, "no frame of \"%s\" has arrived yet", identifier);
    }
    picture = crop != NULL ? &slot->cropped : &slot->whole;
    image_crop_rect(crop != NULL ? crop : &all, slot->width, slot->height, rect);
    if (picture->jpeg == NULL || memcmp(picture->rect, rect, sizeof(rect)) != 0) {
        memcpy(picture->rect, rect, sizeof(rect));
        rc = compress(store, slot, picture, reterr);
        if (rc != 0) {
            tjFree(picture->jpeg);
            *picture = (struct picture){0};
            return rc;
        }
    }
    *image = (struct image){picture->jpeg, picture->bytes, slot->number, rect[2], rect[3]};
    return 0;
}

#include "detector/camera/ring.h"

enum {
    ROWS_ALIGNMENT = 32, /* decoders round the height up to a multiple */
    ROWS_MORE = 2,       /* rows that they may read below it */
    SLOT_PADDING = 256,  /* vector code may read a little past a row's end */
    PAGE_ALIGNMENT = 4096,
};

static size_t aligned(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

int ring_layout(struct ring_layout *ret, uint32_t width, uint32_t height,
                struct baton_error *reterr)
{
    struct ring_layout layout = {.width = (int)width, .height = (int)height};
    size_t at = 0;

    if (width == 0 || height == 0 || width > RING_SIDE_MAX || height > RING_SIDE_MAX ||
        (uint64_t)width * height > RING_PIXELS_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "picture of %ux%u: sides must be 1 to %d, and all of it at most %d pixels",
                         width, height, RING_SIDE_MAX, RING_PIXELS_MAX);
    }
    for (int plane = 0; plane < 3; plane++) {
        size_t row = plane == 0 ? width : (width + 1) / 2;
        size_t rows = aligned(height, ROWS_ALIGNMENT) + ROWS_MORE;
        layout.stride[plane] = (int)aligned(row, RING_ALIGNMENT);
        layout.rows[plane] = (int)(plane == 0 ? rows : rows / 2);
        layout.offset[plane] = at;
        at += (size_t)layout.stride[plane] * (size_t)layout.rows[plane];
    }
    layout.bytes = aligned(at + SLOT_PADDING, PAGE_ALIGNMENT);
    *ret = layout;
    return 0;
}

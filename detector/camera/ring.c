#include "detector/camera/ring.h"

#include "detector/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    ROWS_ALIGNMENT = 32, /* decoders round the height up to a multiple */
    ROWS_MORE = 2,       /* rows that they may read below it */
    PIXELS_USUAL = 1920 * 1088,
    SLOT_PADDING = 256, /* vector code may read a little past a row's end */
    PAGE_ALIGNMENT = 4096,
};

static size_t aligned(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static int slots_for(uint32_t pixels)
{
    uint32_t slots = pixels <= PIXELS_USUAL
                         ? RING_SLOTS
                         : (uint32_t)((uint64_t)RING_SLOTS * PIXELS_USUAL / pixels);

    return slots > RING_SLOTS_MIN ? (int)slots : RING_SLOTS_MIN;
}

int ring_refuse(struct baton_error *reterr, uint32_t width, uint32_t height)
{
    return error_set(reterr, BATON_ETOOBIG,
                     "picture of %ux%u: sides must be 1 to %d, and all of it at most %d pixels",
                     width, height, RING_SIDE_MAX, RING_PIXELS_MAX);
}

bool ring_layout(struct ring_layout *ret, uint32_t width, uint32_t height)
{
    struct ring_layout layout = {.width = (int)width, .height = (int)height};
    size_t at = 0;

    if (width == 0 || height == 0 || width > RING_SIDE_MAX || height > RING_SIDE_MAX ||
        (uint64_t)width * height > RING_PIXELS_MAX) {
        return false;
    }
    for (int plane = 0; plane < 3; plane++) {
        size_t row = plane == 0 ? width : (width + 1) / 2;
        size_t rows = aligned(height, ROWS_ALIGNMENT) + ROWS_MORE;
        layout.stride[plane] = (int)aligned(row, RING_ALIGNMENT);
        layout.rows[plane] = (int)(plane == 0 ? rows : rows / 2);
        layout.offset[plane] = at;
        at += (size_t)layout.stride[plane] * (size_t)layout.rows[plane];
    }
    layout.slots = slots_for(width * height);
    layout.slot_bytes = aligned(at + SLOT_PADDING, PAGE_ALIGNMENT);
    layout.bytes = (size_t)layout.slots * layout.slot_bytes;
    *ret = layout;
    return true;
}

int ring_make(uint8_t **ret, int *ret_fd, const struct ring_layout *layout,
              struct baton_error *reterr)
{
    void *memory = NULL;
    int fd = helper_share(&memory, "baton-frames", layout->bytes, reterr);

    if (fd < 0) {
        return fd;
    }
    *ret = memory;
    *ret_fd = fd;
    return 0;
}

int ring_map(const uint8_t **ret, int fd, const struct ring_layout *layout,
             struct baton_error *reterr)
{
    struct stat status;
    struct statfs filesystem;
    void *memory;
    int seals = fcntl(fd, F_GET_SEALS);

    /* In huge pages, which can run out during a read, the memory would be of another file system.
     */
    if (seals < 0 || (seals & HELPER_SEALS) != HELPER_SEALS || fstatfs(fd, &filesystem) != 0 ||
        filesystem.f_type != TMPFS_MAGIC) {
        return error_set(reterr, BATON_EPROTO, "ring: not sealed shared memory");
    }
    if (fstat(fd, &status) != 0 || status.st_size != (off_t)layout->bytes) {
        return error_set(reterr, BATON_EPROTO, "ring of %dx%d: must have %zu bytes", layout->width,
                         layout->height, layout->bytes);
    }
    memory = mmap(NULL, layout->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return error_set(reterr, BATON_ENOMEM, "ring of %zu bytes: %s", layout->bytes,
                         strerror(errno));
    }
    *ret = memory;
    return 0;
}

void ring_unmap(const uint8_t *memory, const struct ring_layout *layout)
{
    (void)munmap((void *)memory, layout->bytes);
}

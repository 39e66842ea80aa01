#include "detector/camera/ring.h"

#include "base/invariant.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 4096,
    ROWS_ALIGNMENT = 32, /* decoders round the height up to a multiple */
    ROWS_MORE = 2,       /* rows that they may read below it */
    PIXELS_USUAL = 1920 * 1088,
    SLOT_PADDING = 256, /* vector code may read a little past a row's end */
    PAGE_ALIGNMENT = 4096,
};

#define NS_PER_S 1000000000LL

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW };

struct ring_header {
    _Atomic uint64_t sequence[RING_SLOTS]; /* 0: empty, or being written */
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
    layout.bytes = HEADER_BYTES + (size_t)layout.slots * layout.slot_bytes;
    *ret = layout;
    return true;
}

static struct ring_header *header_of(const uint8_t *memory)
{
    return (struct ring_header *)memory;
}

static size_t place_of(const struct ring_layout *layout, int slot, int plane)
{
    INVARIANT(slot >= 0 && slot < layout->slots && plane >= 0 && plane < 3);
    return HEADER_BYTES + (size_t)slot * layout->slot_bytes + layout->offset[plane];
}

/* The futex is shared between processes. The child's page is read-only, which is enough to sleep on
 * it. */
void ring_control_ring(struct ring_control *control)
{
    (void)atomic_fetch_add(&control->rings, 1);
    (void)syscall(SYS_futex, &control->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t ring_control_rings(const struct ring_control *control)
{
    return atomic_load(&control->rings);
}

void ring_control_sleep(const struct ring_control *control, uint32_t rings, span most)
{
    const struct timespec limit = {.tv_sec = most.ns / NS_PER_S, .tv_nsec = most.ns % NS_PER_S};

    if (most.ns > 0) {
        (void)syscall(SYS_futex, &control->rings, FUTEX_WAIT, rings, &limit, NULL, 0);
    }
}

int ring_writer_open(struct ring_writer *ret, uint32_t width, uint32_t height,
                     struct baton_error *reterr)
{
    struct ring_writer writer = {.newest = -1};
    void *memory = MAP_FAILED;

    if (!ring_layout(&writer.layout, width, height)) {
        return ring_refuse(reterr, width, height);
    }
    writer.fd = memfd_create("baton-frames", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (writer.fd >= 0 && ftruncate(writer.fd, (off_t)writer.layout.bytes) == 0) {
        memory = mmap(NULL, writer.layout.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, writer.fd, 0);
    }
    if (memory == MAP_FAILED || fcntl(writer.fd, F_ADD_SEALS, SEALS) != 0) {
        int error = errno;
        if (memory != MAP_FAILED) {
            (void)munmap(memory, writer.layout.bytes);
        }
        if (writer.fd >= 0) {
            (void)close(writer.fd);
        }
        return error_set(reterr, BATON_ENOMEM, "shared memory of %zu bytes: %s",
                         writer.layout.bytes, strerror(error));
    }
    writer.memory = memory;
    *ret = writer;
    return 0;
}

void ring_writer_close(struct ring_writer *writer)
{
    if (writer->memory != NULL) {
        (void)munmap(writer->memory, writer->layout.bytes);
        (void)close(writer->fd);
    }
    *writer = (struct ring_writer){.fd = -1, .newest = -1};
}

/* Empties the slot; false: it is held, or it is the newest. */
static bool take_slot(struct ring_writer *writer, const struct ring_control *control, int slot)
{
    if (slot == writer->newest || (writer->lent & 1U << slot) != 0 ||
        atomic_load(&control->held[slot]) != 0) {
        return false;
    }
    atomic_store(&header_of(writer->memory)->sequence[slot], 0);
    /* The parent has claimed it meanwhile: it finds the slot empty and lets go, and the frame in it
     * is older than the newest. */
    return atomic_load(&control->held[slot]) == 0;
}

int ring_writer_begin(struct ring_writer *writer, const struct ring_control *control)
{
    for (int slot = 0; slot < writer->layout.slots; slot++) {
        if (take_slot(writer, control, slot)) {
            writer->used |= 1U << slot;
            return slot;
        }
    }
    return -1;
}

void ring_writer_trim(struct ring_writer *writer, const struct ring_control *control)
{
    for (int slot = 0; slot < writer->layout.slots; slot++) {
        if ((writer->used & 1U << slot) != 0 && take_slot(writer, control, slot) &&
            madvise(writer->memory + place_of(&writer->layout, slot, 0), writer->layout.slot_bytes,
                    MADV_REMOVE) == 0) {
            writer->used &= ~(1U << slot);
        }
    }
}

int ring_writer_lend(struct ring_writer *writer, const struct ring_control *control)
{
    int most = writer->layout.slots - RING_HELD_MAX - 2; /* the newest, and one for copies */
    int slot = -1;

    if (__builtin_popcount(writer->lent) < most) {
        slot = ring_writer_begin(writer, control);
    }
    if (slot >= 0) {
        writer->lent |= 1U << slot;
    }
    return slot;
}

void ring_writer_give_back(struct ring_writer *writer, int slot)
{
    INVARIANT((writer->lent & 1U << slot) != 0);
    writer->lent &= ~(1U << slot);
}

uint8_t *ring_writer_plane(const struct ring_writer *writer, int slot, int plane)
{
    return writer->memory + place_of(&writer->layout, slot, plane);
}

void ring_writer_commit(struct ring_writer *writer, int slot, uint64_t sequence)
{
    atomic_store(&header_of(writer->memory)->sequence[slot], sequence);
    writer->newest = slot;
}

int ring_reader_open(struct ring_reader *ret, int fd, uint32_t width, uint32_t height,
                     struct baton_error *reterr)
{
    struct ring_reader reader;
    struct stat status;
    struct statfs filesystem;
    void *memory;
    int seals = fcntl(fd, F_GET_SEALS);

    if (!ring_layout(&reader.layout, width, height)) {
        return error_set(reterr, BATON_EPROTO, "ring of %ux%u: sides must be 1 to %d", width,
                         height, RING_SIDE_MAX);
    }
    /* In huge pages, which can run out during a read, the memory would be of another file system.
     */
    if (seals < 0 || (seals & SEALS) != SEALS || fstatfs(fd, &filesystem) != 0 ||
        filesystem.f_type != TMPFS_MAGIC) {
        return error_set(reterr, BATON_EPROTO, "ring: not sealed shared memory");
    }
    if (fstat(fd, &status) != 0 || status.st_size != (off_t)reader.layout.bytes) {
        return error_set(reterr, BATON_EPROTO, "ring of %ux%u: must have %zu bytes", width, height,
                         reader.layout.bytes);
    }
    memory = mmap(NULL, reader.layout.bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return error_set(reterr, BATON_ENOMEM, "ring of %zu bytes: %s", reader.layout.bytes,
                         strerror(errno));
    }
    reader.memory = memory;
    *ret = reader;
    return 0;
}

void ring_reader_close(struct ring_reader *reader)
{
    if (reader->memory != NULL) {
        (void)munmap((void *)reader->memory, reader->layout.bytes);
        reader->memory = NULL;
    }
}

bool ring_reader_claim(const struct ring_reader *reader, struct ring_control *control, int slot,
                       uint64_t sequence)
{
    INVARIANT(slot >= 0 && slot < reader->layout.slots && sequence != 0);
    (void)atomic_fetch_add(&control->held[slot], 1);
    if (atomic_load(&header_of(reader->memory)->sequence[slot]) == sequence) {
        return true;
    }
    ring_release(control, slot);
    return false;
}

void ring_release(struct ring_control *control, int slot)
{
    (void)atomic_fetch_sub(&control->held[slot], 1);
}

const uint8_t *ring_reader_plane(const struct ring_reader *reader, int slot, int plane)
{
    return reader->memory + place_of(&reader->layout, slot, plane);
}

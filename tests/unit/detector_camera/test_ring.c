#include "cmocka_all.h"

#include "detector/camera/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WIDTH = 64, HEIGHT = 4, FRAMES = 3000000, RETURNS = 5000 };

struct pair {
    struct ring_control control;
    struct ring_writer writer;
    struct ring_reader reader;
};

static void pair_open(struct pair *pair)
{
    memset(pair, 0, sizeof(*pair));
    assert_int_equal(ring_writer_open(&pair->writer, WIDTH, HEIGHT, NULL), 0);
    assert_int_equal(ring_reader_open(&pair->reader, pair->writer.fd, WIDTH, HEIGHT, NULL), 0);
}

static void pair_close(struct pair *pair)
{
    ring_reader_close(&pair->reader);
    ring_writer_close(&pair->writer);
}

/* Writes a frame that is `sequence` all over; returns its slot. */
static int write_frame(struct pair *pair, uint64_t sequence)
{
    int slot = ring_writer_begin(&pair->writer, &pair->control);

    assert_true(slot >= 0);
    memset(ring_writer_plane(&pair->writer, slot, 0), (int)(sequence & 0xff), WIDTH * HEIGHT);
    ring_writer_commit(&pair->writer, slot, sequence);
    return slot;
}

static void a_layout_fits_odd_sizes_and_refuses_what_is_too_large(void **state)
{
    struct ring_layout layout;

    (void)state;
    assert_true(ring_layout(&layout, 321, 241));
    assert_true(layout.stride[0] >= 321 && layout.stride[1] >= 161);
    assert_true(layout.offset[1] >= (size_t)layout.stride[0] * 241);
    assert_true(layout.offset[2] >= layout.offset[1] + (size_t)layout.stride[1] * 121);
    assert_true(layout.slot_bytes >= layout.offset[2] + (size_t)layout.stride[2] * 121);
    assert_true(ring_layout(&layout, 1, 1));
    assert_true(ring_layout(&layout, RING_SIDE_MAX, RING_PIXELS_MAX / RING_SIDE_MAX));
    assert_false(ring_layout(&layout, 0, 1));
    assert_false(ring_layout(&layout, 1, RING_SIDE_MAX + 1));
    assert_false(ring_layout(&layout, RING_SIDE_MAX, RING_SIDE_MAX));
    assert_false(ring_layout(&layout, UINT32_MAX, UINT32_MAX));
}

static void a_frame_is_read_where_it_was_written(void **state)
{
    struct pair pair;
    int slot;

    (void)state;
    pair_open(&pair);
    slot = write_frame(&pair, 7);
    assert_true(ring_reader_claim(&pair.reader, &pair.control, slot, 7));
    assert_int_equal(ring_reader_plane(&pair.reader, slot, 0)[WIDTH * HEIGHT - 1], 7);
    ring_release(&pair.control, slot);
    pair_close(&pair);
}

static void a_held_frame_is_never_overwritten_and_the_writer_never_stuck(void **state)
{
    struct pair pair;
    int held[RING_HELD_MAX];

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < RING_HELD_MAX; i++) {
        held[i] = write_frame(&pair, (uint64_t)i + 1);
        assert_true(ring_reader_claim(&pair.reader, &pair.control, held[i], (uint64_t)i + 1));
    }
    for (uint64_t sequence = 10; sequence < 100; sequence++) {
        (void)write_frame(&pair, sequence);
    }
    for (int i = 0; i < RING_HELD_MAX; i++) {
        assert_int_equal(ring_reader_plane(&pair.reader, held[i], 0)[0], i + 1);
    }
    pair_close(&pair);
}

static void a_frame_that_was_overtaken_cannot_be_claimed(void **state)
{
    struct pair pair;
    int first;

    (void)state;
    pair_open(&pair);
    first = write_frame(&pair, 1);
    (void)write_frame(&pair, 2);
    (void)write_frame(&pair, 3);
    assert_false(ring_reader_claim(&pair.reader, &pair.control, first, 1));
    assert_int_equal(atomic_load(&pair.control.held[first]), 0);
    pair_close(&pair);
}

/* The decoder may have many, but never so many that nothing could be copied in. */
static void what_is_lent_is_left_alone_until_it_is_given_back(void **state)
{
    struct pair pair;
    uint32_t lent = 0;
    int slot;

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < RING_HELD_MAX; i++) {
        slot = write_frame(&pair, (uint64_t)i + 1);
        assert_true(ring_reader_claim(&pair.reader, &pair.control, slot, (uint64_t)i + 1));
    }
    while ((slot = ring_writer_lend(&pair.writer, &pair.control)) >= 0) {
        assert_int_equal(lent & 1U << slot, 0);
        lent |= 1U << slot;
    }
    assert_true(__builtin_popcount(lent) > 16);
    for (uint64_t sequence = 10; sequence < 100; sequence++) {
        assert_int_equal(lent & 1U << write_frame(&pair, sequence), 0);
    }
    slot = __builtin_ctz(lent);
    ring_writer_give_back(&pair.writer, slot);
    assert_true(ring_writer_lend(&pair.writer, &pair.control) >= 0);
    assert_int_equal(ring_writer_lend(&pair.writer, &pair.control), -1);
    pair_close(&pair);
}

static blkcnt_t blocks_of(const struct pair *pair)
{
    struct stat status;

    assert_int_equal(fstat(pair->writer.fd, &status), 0);
    return status.st_blocks;
}

/* Of a few slots with memory, one is held, one is lent, and one is the newest. */
static void what_nobody_has_costs_no_memory(void **state)
{
    struct pair pair;
    blkcnt_t full;
    int held, lent;

    (void)state;
    pair_open(&pair);
    held = write_frame(&pair, 1);
    assert_true(ring_reader_claim(&pair.reader, &pair.control, held, 1));
    lent = ring_writer_lend(&pair.writer, &pair.control);
    memset(ring_writer_plane(&pair.writer, lent, 0), 2, WIDTH * HEIGHT);
    (void)write_frame(&pair, 3);
    (void)write_frame(&pair, 4);
    full = blocks_of(&pair);
    ring_writer_trim(&pair.writer, &pair.control);
    assert_true(blocks_of(&pair) < full);
    assert_int_equal(ring_reader_plane(&pair.reader, held, 0)[0], 1);
    assert_int_equal(ring_reader_plane(&pair.reader, lent, 0)[0], 2);
    assert_int_equal(ring_reader_plane(&pair.reader, pair.writer.newest, 0)[0], 4);
    assert_false(ring_reader_claim(&pair.reader, &pair.control, 0, 3));
    full = blocks_of(&pair);
    ring_release(&pair.control, held);
    ring_writer_give_back(&pair.writer, lent);
    ring_writer_trim(&pair.writer, &pair.control);
    assert_true(blocks_of(&pair) < full);
    assert_true(ring_reader_claim(&pair.reader, &pair.control, pair.writer.newest, 4));
    assert_int_equal(ring_reader_plane(&pair.reader, pair.writer.newest, 0)[0], 4);
    full = blocks_of(&pair);
    (void)write_frame(&pair, 5);
    assert_true(blocks_of(&pair) > full);
    pair_close(&pair);
}

static void large_pictures_have_fewer_slots_but_enough(void **state)
{
    struct ring_layout layout;

    (void)state;
    assert_true(ring_layout(&layout, 1920, 1080));
    assert_int_equal(layout.slots, RING_SLOTS);
    assert_true(ring_layout(&layout, 2560, 1440));
    assert_in_range(layout.slots, RING_SLOTS_MIN, RING_SLOTS - 1);
    assert_true(ring_layout(&layout, RING_SIDE_MAX, RING_PIXELS_MAX / RING_SIDE_MAX));
    assert_int_equal(layout.slots, RING_SLOTS_MIN);
    assert_true(layout.bytes < (size_t)1 << 30);
}

/* The parent maps only what cannot be taken from under it. */
static void memory_that_is_unsealed_or_of_another_size_is_refused(void **state)
{
    struct ring_reader reader;
    struct ring_writer writer;
    struct ring_layout layout;
    struct baton_error error;
    int fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    (void)state;
    assert_true(ring_layout(&layout, WIDTH, HEIGHT));
    assert_int_equal(ftruncate(fd, (off_t)layout.bytes), 0);
    assert_int_equal(ring_reader_open(&reader, fd, WIDTH, HEIGHT, &error), BATON_EPROTO);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
    assert_int_equal(ring_reader_open(&reader, fd, WIDTH, HEIGHT, &error), BATON_EPROTO);
    (void)close(fd);
    assert_int_equal(ring_writer_open(&writer, WIDTH, HEIGHT, NULL), 0);
    assert_int_equal(ring_reader_open(&reader, writer.fd, WIDTH, HEIGHT * 400, &error),
                     BATON_EPROTO);
    assert_int_not_equal(ftruncate(writer.fd, 0), 0);
    ring_writer_close(&writer);
    fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(ring_reader_open(&reader, fd, WIDTH, HEIGHT, &error), BATON_EPROTO);
    (void)close(fd);
}

struct race {
    struct pair pair;
    _Atomic uint64_t told[RING_SLOTS]; /* the newest frame of each slot */
    _Atomic bool is_over;
};

static void *write_on(void *userdata)
{
    struct race *race = userdata;

    for (uint64_t sequence = 1; sequence <= FRAMES; sequence++) {
        int slot = ring_writer_begin(&race->pair.writer, &race->pair.control);
        if (slot >= 0) {
            memset(ring_writer_plane(&race->pair.writer, slot, 0), (int)(sequence & 0xff),
                   WIDTH * HEIGHT);
            ring_writer_commit(&race->pair.writer, slot, sequence);
            atomic_store(&race->told[slot], sequence);
        }
    }
    atomic_store(&race->is_over, true);
    return NULL;
}

/* Both as fast as they can, the reader after old frames too, for which it is nearly too late: what
 * is claimed is one whole frame, and stays it. */
static void a_claimed_frame_stays_whole_while_the_writer_runs(void **state)
{
    static struct race race;
    pthread_t writer;
    unsigned claimed = 0, torn = 0;

    (void)state;
    pair_open(&race.pair);
    assert_int_equal(pthread_create(&writer, NULL, write_on, &race), 0);
    for (int slot = 0; !atomic_load(&race.is_over); slot = (slot + 1) % RING_SLOTS) {
        uint64_t sequence = atomic_load(&race.told[slot]);
        if (sequence != 0 &&
            ring_reader_claim(&race.pair.reader, &race.pair.control, slot, sequence)) {
            const uint8_t *luma = ring_reader_plane(&race.pair.reader, slot, 0);
            claimed++;
            for (int i = 0; i < WIDTH * HEIGHT; i++) {
                torn += luma[i] != (sequence & 0xff);
            }
            ring_release(&race.pair.control, slot);
        }
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_true(claimed > 0);
    assert_int_equal(torn, 0);
    pair_close(&race.pair);
}

static void *give_back(void *userdata)
{
    struct ring_control *control = userdata;

    for (uint64_t sequence = 1; sequence <= RETURNS; sequence++) {
        atomic_store(&control->returned, sequence);
        ring_control_ring(control);
        while (sequence < RETURNS && atomic_load(&control->is_stopping) < sequence) {
            (void)sched_yield();
        }
    }
    return NULL;
}

/* With a limit far beyond the test's own, a ring that is missed would hang it. The sleeper answers
 * in is_stopping, so that each time it sleeps or is just about to when the bell rings. */
static void who_sleeps_is_woken_by_every_ring(void **state)
{
    static struct ring_control control;
    pthread_t parent;
    uint32_t rings = ring_control_rings(&control);

    (void)state;
    assert_int_equal(pthread_create(&parent, NULL, give_back, &control), 0);
    for (uint64_t sequence = 1; sequence <= RETURNS; sequence++) {
        while (atomic_load(&control.returned) < sequence) {
            ring_control_sleep(&control, rings, SPAN_S(3600));
            rings = ring_control_rings(&control);
        }
        atomic_store(&control.is_stopping, (uint32_t)sequence);
    }
    assert_int_equal(pthread_join(parent, NULL), 0);
}

/* As the child has it. */
static void a_page_that_is_read_only_can_be_slept_on(void **state)
{
    int fd = memfd_create("control", MFD_CLOEXEC);
    struct ring_control *ours, *theirs;

    (void)state;
    assert_int_equal(ftruncate(fd, sizeof(*ours)), 0);
    ours = mmap(NULL, sizeof(*ours), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    theirs = mmap(NULL, sizeof(*theirs), PROT_READ, MAP_SHARED, fd, 0);
    assert_true(ours != MAP_FAILED && theirs != MAP_FAILED);
    errno = 0;
    ring_control_sleep(theirs, ring_control_rings(theirs), SPAN_MS(1));
    assert_int_equal(errno, ETIMEDOUT);
    ring_control_ring(ours);
    ring_control_sleep(theirs, 0, SPAN_S(3600)); /* rung before it slept */
    assert_int_equal(errno, EAGAIN);
    (void)munmap(ours, sizeof(*ours));
    (void)munmap(theirs, sizeof(*theirs));
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_fits_odd_sizes_and_refuses_what_is_too_large),
        cmocka_unit_test(a_frame_is_read_where_it_was_written),
        cmocka_unit_test(a_held_frame_is_never_overwritten_and_the_writer_never_stuck),
        cmocka_unit_test(a_frame_that_was_overtaken_cannot_be_claimed),
        cmocka_unit_test(what_is_lent_is_left_alone_until_it_is_given_back),
        cmocka_unit_test(what_nobody_has_costs_no_memory),
        cmocka_unit_test(large_pictures_have_fewer_slots_but_enough),
        cmocka_unit_test(memory_that_is_unsealed_or_of_another_size_is_refused),
        cmocka_unit_test(who_sleeps_is_woken_by_every_ring),
        cmocka_unit_test(a_page_that_is_read_only_can_be_slept_on),
        cmocka_unit_test(a_claimed_frame_stays_whole_while_the_writer_runs),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_ring", tests, NULL, NULL);
}

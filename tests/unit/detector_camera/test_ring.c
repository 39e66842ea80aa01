#include "cmocka_all.h"

#include "detector/camera/ring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WIDTH = 64, HEIGHT = 4 };

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
static void memory_is_shared_unless_it_is_unsealed_or_of_another_size(void **state)
{
    struct ring_layout layout, larger;
    struct baton_error error;
    const uint8_t *memory;
    uint8_t *ours;
    int fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    (void)state;
    assert_true(ring_layout(&layout, WIDTH, HEIGHT));
    assert_true(ring_layout(&larger, WIDTH, HEIGHT * 400));
    assert_int_equal(ftruncate(fd, (off_t)layout.bytes), 0);
    assert_int_equal(ring_map(&memory, fd, &layout, &error), BATON_EPROTO);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
    assert_int_equal(ring_map(&memory, fd, &layout, &error), BATON_EPROTO);
    (void)close(fd);
    assert_int_equal(ring_make(&ours, &fd, &layout, NULL), 0);
    assert_int_equal(ring_map(&memory, fd, &larger, &error), BATON_EPROTO);
    assert_int_equal(ring_map(&memory, fd, &layout, &error), 0);
    ours[layout.bytes - 1] = 7;
    assert_int_equal(memory[layout.bytes - 1], 7);
    assert_int_not_equal(ftruncate(fd, 0), 0);
    ring_unmap(memory, &layout);
    ring_unmap(ours, &layout);
    (void)close(fd);
    fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(ring_map(&memory, fd, &layout, &error), BATON_EPROTO);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_fits_odd_sizes_and_refuses_what_is_too_large),
        cmocka_unit_test(large_pictures_have_fewer_slots_but_enough),
        cmocka_unit_test(memory_is_shared_unless_it_is_unsealed_or_of_another_size),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_ring", tests, NULL, NULL);
}

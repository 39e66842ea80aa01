#include "cmocka_all.h"

#include "detector/camera/ring.h"

static void a_layout_fits_odd_sizes_and_refuses_what_is_too_large(void **state)
{
    struct ring_layout layout;

    assert_int_equal(ring_layout(&layout, 321, 241, NULL), 0);
    assert_true(layout.stride[0] >= 321 && layout.stride[1] >= 161);
    assert_true(layout.offset[1] >= (size_t)layout.stride[0] * 241);
    assert_true(layout.offset[2] >= layout.offset[1] + (size_t)layout.stride[1] * 121);
    assert_true(layout.bytes >= layout.offset[2] + (size_t)layout.stride[2] * 121);
    assert_int_equal(ring_layout(&layout, 1, 1, NULL), 0);
    assert_int_equal(ring_layout(&layout, RING_SIDE_MAX, RING_PIXELS_MAX / RING_SIDE_MAX, NULL), 0);
    assert_int_equal(ring_layout(&layout, 0, 1, NULL), BATON_ETOOBIG);
    assert_int_equal(ring_layout(&layout, 1, RING_SIDE_MAX + 1, NULL), BATON_ETOOBIG);
    assert_int_equal(ring_layout(&layout, RING_SIDE_MAX, RING_SIDE_MAX, NULL), BATON_ETOOBIG);
    assert_int_equal(ring_layout(&layout, UINT32_MAX, UINT32_MAX, NULL), BATON_ETOOBIG);
}

static void no_picture_needs_more_than_there_is_from_slot_to_slot(void **state)
{
    struct ring_layout layout;

    for (uint32_t width = 1; width <= RING_SIDE_MAX; width++) {
        uint32_t height = RING_PIXELS_MAX / width;
        assert_int_equal(
            ring_layout(&layout, width, height < RING_SIDE_MAX ? height : RING_SIDE_MAX, NULL), 0);
        assert_in_range(layout.bytes, layout.offset[2] + 1, RING_STRIDE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_fits_odd_sizes_and_refuses_what_is_too_large),
        cmocka_unit_test(no_picture_needs_more_than_there_is_from_slot_to_slot),
    };
    return cmocka_run_group_tests_name("unit_detector_camera_ring", tests, NULL, NULL);
}

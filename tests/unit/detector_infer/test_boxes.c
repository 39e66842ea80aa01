#include "cmocka_all.h"

#include "detector/infer/boxes.h"

#include <math.h>
#include <string.h>

enum { CLASSES = 3, ROWS = 100, V5 = 5 + CLASSES, V8 = 4 + CLASSES, FIELDS_MAX = V5 };

static float values[2 * ROWS * FIELDS_MAX];
static struct box boxes[BOXES_MAX];

/* 1280x720 in 640x640: half the size, 140 of padding above. */
static struct fit letterbox(void)
{
    struct fit fit;

    assert_int_equal(fit_init(&fit, (int[]){0, 0, 1280, 720}, 640, 640, true, NULL), 0);
    return fit;
}

static const struct box_rules rules = {.classes = CLASSES, .score_min = 0.25F, .overlap_max = 0.5F};

struct row {
    float x, y, width, height, objectness; /* the last of yolov5 only */
    float scores[CLASSES];
};

static void put(const struct box_layout *layout, size_t picture, size_t at, const struct row *row)
{
    const float place[] = {row->x, row->y, row->width, row->height};
    float *to = values + picture * layout->picture_step + at * layout->row_step;
    size_t field = 0;

    for (; field < 4; field++) {
        to[field * layout->field_step] = place[field];
    }
    if (layout->head == BOX_HEAD_YOLOV5) {
        to[field++ * layout->field_step] = row->objectness;
    }
    for (int class = 0; class < CLASSES; class ++, field++) {
        to[field * layout->field_step] = row->scores[class];
    }
}

static struct box_layout laid_out(enum box_head head, int64_t batch, int64_t a, int64_t b)
{
    struct shape shape = {3, {batch, a, b}};
    struct box_rules wanted = rules;
    struct box_layout layout;
    struct baton_error error = {0};

    wanted.head = head;
    if (box_layout(&layout, &shape, &wanted, &error) != 0) {
        fail_msg("%s", error.message);
    }
    memset(values, 0, sizeof(values));
    return layout;
}

static int decode(const struct box_layout *layout, size_t picture)
{
    struct fit fit = letterbox();

    return boxes_decode(boxes, BOXES_MAX, values, layout, picture, &rules, &fit, NULL);
}

static void assert_box(const struct box *box, float x, float y, float width, float height,
                       int label, float score)
{
    assert_float_equal(box->x, x, 1e-3);
    assert_float_equal(box->y, y, 1e-3);
    assert_float_equal(box->width, width, 1e-3);
    assert_float_equal(box->height, height, 1e-3);
    assert_int_equal(box->label, label);
    assert_float_equal(box->score, score, 1e-6);
}

static void every_layout_gives_the_same_boxes(void **state)
{
    const struct {
        enum box_head head, found;
        int64_t a, b;
    } cases[] = {
        {BOX_HEAD_YOLOV5, BOX_HEAD_YOLOV5, ROWS, V5}, {BOX_HEAD_YOLOV5, BOX_HEAD_YOLOV5, V5, ROWS},
        {BOX_HEAD_YOLOV8, BOX_HEAD_YOLOV8, V8, ROWS}, {BOX_HEAD_YOLOV8, BOX_HEAD_YOLOV8, ROWS, V8},
        {BOX_HEAD_ANY, BOX_HEAD_YOLOV5, ROWS, V5},    {BOX_HEAD_ANY, BOX_HEAD_YOLOV8, V8, ROWS},
        {BOX_HEAD_ANY, BOX_HEAD_YOLOV8, ROWS, V8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct box_layout layout = laid_out(cases[i].head, 2, cases[i].a, cases[i].b);
        bool is_v5 = layout.head == BOX_HEAD_YOLOV5;
        assert_int_equal(layout.head, cases[i].found);
        assert_int_equal(layout.rows, ROWS);
        assert_int_equal(layout.batch, 2);
        put(&layout, 0, 3, &(struct row){100, 240, 40, 20, 0.5F, {0.125F, 0.75F, 0}});
        put(&layout, 1, 99, &(struct row){320, 320, 64, 32, 1, {0.5F, 0, 0}});
        put(&layout, 1, 64, &(struct row){20, 150, 20, 10, 1, {0, 0, 0.875F}});
        assert_int_equal(decode(&layout, 0), 1);
        assert_box(&boxes[0], 160, 180, 80, 40, 1, is_v5 ? 0.375F : 0.75F);
        assert_int_equal(decode(&layout, 1), 2);
        assert_box(&boxes[0], 20, 10, 40, 20, 2, 0.875F);
        assert_box(&boxes[1], 576, 328, 128, 64, 0, 0.5F);
    }
}

static void a_shape_of_other_classes_is_refused_and_both_are_named(void **state)
{
    const struct shape shapes[] = {
        {3, {1, 84, 8400}},
        {3, {1, -1, V5}},
        {4, {1, 1, ROWS, V5}},
        {1, {V5}},
    };
    struct box_rules wanted = rules;
    struct box_layout layout;
    struct baton_error error;

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        assert_int_equal(box_layout(&layout, &shapes[i], &wanted, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, "does not fit 3 classes"));
    }
    assert_int_equal(box_layout(&layout, &shapes[0], &wanted, &error), BATON_EINVAL);
    assert_string_equal(error.message, "output [1, 84, 8400] does not fit 3 classes: yolov5 would "
                                       "be [1, N, 8], yolov8 [1, 7, N]");
    wanted.head = BOX_HEAD_YOLOV5; /* that of the other head is not taken for its own */
    assert_int_equal(box_layout(&layout, &(struct shape){3, {1, V8, ROWS}}, &wanted, &error),
                     BATON_EINVAL);
    wanted.classes = 0;
    assert_int_equal(box_layout(&layout, &shapes[0], &wanted, &error), BATON_EINVAL);
}

static void without_a_batch_and_with_sides_alike_the_usual_layout_is_meant(void **state)
{
    struct box_rules wanted = rules;
    struct box_layout layout;

    (void)state;
    assert_int_equal(box_layout(&layout, &(struct shape){2, {V8, V8}}, &wanted, NULL), 0);
    assert_int_equal(layout.head, BOX_HEAD_YOLOV8);
    assert_int_equal(layout.row_step, 1);
    assert_int_equal(layout.batch, 1);
    wanted.head = BOX_HEAD_YOLOV5;
    assert_int_equal(box_layout(&layout, &(struct shape){2, {V5, V5}}, &wanted, NULL), 0);
    assert_int_equal(layout.field_step, 1);
}

static void boxes_that_overlap_are_one_unless_their_classes_differ(void **state)
{
    struct box_layout layout = laid_out(BOX_HEAD_YOLOV8, 1, V8, ROWS);

    (void)state;
    put(&layout, 0, 0, &(struct row){100, 300, 40, 40, 0, {0.5F, 0, 0}});
    put(&layout, 0, 1, &(struct row){104, 300, 40, 40, 0, {0.75F, 0, 0}});  /* 36/44 */
    put(&layout, 0, 2, &(struct row){124, 300, 40, 40, 0, {0.625F, 0, 0}}); /* 20/60 with 1 */
    put(&layout, 0, 3, &(struct row){104, 300, 40, 40, 0, {0, 0.375F, 0}});
    assert_int_equal(decode(&layout, 0), 3);
    assert_box(&boxes[0], 168, 280, 80, 80, 0, 0.75F);
    assert_box(&boxes[1], 208, 280, 80, 80, 0, 0.625F);
    assert_box(&boxes[2], 168, 280, 80, 80, 1, 0.375F);
    assert_float_equal(box_overlap(&boxes[0], &boxes[1]), 1.0 / 3, 1e-6);
    assert_float_equal(box_overlap(&boxes[0], &boxes[2]), 1, 0);
}

static void what_is_no_box_is_none(void **state)
{
    const struct row rows[] = {
        {NAN, 300, 40, 40, 1, {0.9F, 0, 0}},      {100, INFINITY, 40, 40, 1, {0.9F, 0, 0}},
        {100, 300, -40, 40, 1, {0.9F, 0, 0}},     {100, 300, 40, 0, 1, {0.9F, 0, 0}},
        {100, 300, 40, NAN, 1, {0.9F, 0, 0}},     {100, 300, 40, 40, 1, {NAN, NAN, NAN}},
        {100, 300, 40, 40, 1, {0, INFINITY, 0}},  {100, 300, 40, 40, NAN, {0.9F, 0, 0}},
        {100, 300, 40, 40, 1, {0.25F, 0.1F, 0}},  {100, 40, 40, 40, 1, {0.9F, 0, 0}},
        {3e38F, 300, 3e38F, 40, 1, {0.9F, 0, 0}}, {-3e38F, 300, 40, 40, 1, {0.9F, 0, 0}},
        {100, 300, 40, 40, -1, {-0.9F, -1, -1}},
    };
    struct box_layout layout = laid_out(BOX_HEAD_YOLOV5, 1, ROWS, V5);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        put(&layout, 0, i, &rows[i]);
    }
    put(&layout, 0, 90, &(struct row){100, 300, 40, 40, 1, {NAN, 0.5F, NAN}});
    assert_int_equal(decode(&layout, 0), 1);
    assert_box(&boxes[0], 160, 280, 80, 80, 1, 0.5F);
}

static void a_box_is_cut_to_what_the_model_was_shown(void **state)
{
    struct box_layout layout = laid_out(BOX_HEAD_YOLOV8, 1, V8, ROWS);
    struct box_rules relative = rules;
    struct fit fit;

    (void)state;
    put(&layout, 0, 0, &(struct row){0, 140, 1e30F, 100, 0, {2, 0, 0}});
    assert_int_equal(decode(&layout, 0), 1);
    assert_box(&boxes[0], 0, 0, 1280, 100, 0, 1);

    relative.are_relative = true;
    put(&layout, 0, 0, &(struct row){0.5F, 0.5F, 0.25F, 2, 0, {0.5F, 0, 0}});
    assert_int_equal(fit_init(&fit, (int[]){300, 100, 200, 80}, 64, 64, false, NULL), 0);
    assert_int_equal(boxes_decode(boxes, 1, values, &layout, 0, &relative, &fit, NULL), 1);
    assert_box(&boxes[0], 375, 100, 50, 80, 0, 0.5F);
}

static void there_are_never_more_than_asked_for_and_the_best_are_kept(void **state)
{
    struct box_layout layout = laid_out(BOX_HEAD_YOLOV8, 1, V8, ROWS);
    struct fit fit = letterbox();
    struct baton_error error;

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        put(&layout, 0, i,
            &(struct row){(float)(6 * i + 3), 300, 4, 4, 0, {0.5F + (float)i / 512, 0, 0}});
    }
    assert_int_equal(boxes_decode(boxes, 10, values, &layout, 0, &rules, &fit, NULL), 10);
    assert_float_equal(boxes[0].score, 0.5F + 99.0F / 512, 1e-6);
    assert_float_equal(boxes[9].score, 0.5F + 90.0F / 512, 1e-6);
    assert_int_equal(decode(&layout, 0), ROWS);
    assert_int_equal(boxes_decode(boxes, 0, values, &layout, 0, &rules, &fit, NULL), 0);
    assert_int_equal(boxes_decode(boxes, 1, values, &layout, 1, &rules, &fit, &error),
                     BATON_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_gives_the_same_boxes),
        cmocka_unit_test(a_shape_of_other_classes_is_refused_and_both_are_named),
        cmocka_unit_test(without_a_batch_and_with_sides_alike_the_usual_layout_is_meant),
        cmocka_unit_test(boxes_that_overlap_are_one_unless_their_classes_differ),
        cmocka_unit_test(what_is_no_box_is_none),
        cmocka_unit_test(a_box_is_cut_to_what_the_model_was_shown),
        cmocka_unit_test(there_are_never_more_than_asked_for_and_the_best_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What each layout of outputs means. */
#include "cmocka_all.h"

#include "detector/infer/decoder.h"

#include <math.h>
#include <string.h>

enum { CLASSES = 3, ROWS = 100, FIELDS_MAX = 8, SIDE = 640, PRIORS = 2 * (8 * 8 + 4 * 4 + 2 * 2) };

static const char *names[] = {"A", "B", "Ü"};
static struct answer answer;
static float values[2 * ROWS * FIELDS_MAX];
static struct fit fit;

static struct pipeline_model model_of(enum pipeline_decoder decoder)
{
    return (struct pipeline_model){.decoder = decoder,
                                   .classes = names,
                                   .class_count = CLASSES,
                                   .input = {.width = SIDE, .height = SIDE},
                                   .blank = -1,
                                   .nms = decoder == DECODER_YOLOV10 ? 1 : 0.5F};
}

/* 1280x720 in 640x640: half the size, 140 of padding above. */
static int set_up(void **state)
{
    memset(values, 0, sizeof(values));
    fit_init(&fit, (int[]){0, 0, 1280, 720}, SIDE, SIDE, true);
    return 0;
}

static int read_of(const struct pipeline_model *model, const struct tensor *all, int count,
                   int64_t picture, struct baton_error *reterr)
{
    int64_t pictures = all->shape.rank > 2 ? all->shape.sides[0] : 1;

    return answer_read(
        &answer, &(struct outputs){model, all, count, pictures, picture, &fit, 0.25F}, reterr);
}

static int read_as(enum pipeline_decoder decoder, const struct shape *shape)
{
    const struct pipeline_model model = model_of(decoder);
    struct baton_error error = {0};

    if (read_of(&model, &(struct tensor){*shape, values}, 1, 0, &error) != 0) {
        fail_msg("%s", error.message);
    }
    return answer.box_count;
}

static void assert_box(int at, float x, float y, float width, float height, int label, float score)
{
    const struct box *box = &answer.boxes[at];

    assert_float_equal(box->x, x, 2e-3);
    assert_float_equal(box->y, y, 2e-3);
    assert_float_equal(box->width, width, 2e-3);
    assert_float_equal(box->height, height, 2e-3);
    assert_int_equal(box->label, label);
    assert_float_equal(box->score, score, 1e-5);
}

static void put(size_t first, size_t step, const float *row, size_t fields)
{
    for (size_t i = 0; i < fields; i++) {
        values[first + i * step] = row[i];
    }
}

static void yolo_is_read_in_either_order_of_its_sides(void **state)
{
    static const struct {
        enum pipeline_decoder decoder;
        int64_t a, b;
    } cases[] = {{DECODER_YOLOV5, ROWS, 8},
                 {DECODER_YOLOV5, 8, ROWS},
                 {DECODER_YOLOV8, 7, ROWS},
                 {DECODER_YOLOV8, ROWS, 7}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_v5 = cases[i].decoder == DECODER_YOLOV5;
        size_t fields = is_v5 ? 8 : 7;
        bool are_rows = cases[i].a == ROWS;
        size_t row = are_rows ? fields : 1, step = are_rows ? 1 : ROWS;
        const float v5[] = {100, 240, 40, 20, 0.5F, 0.125F, 0.75F, 0};
        const float v8[] = {100, 240, 40, 20, 0.125F, 0.75F, 0};
        const struct pipeline_model model = model_of(cases[i].decoder);
        const struct tensor output = {{3, {2, cases[i].a, cases[i].b}}, values};

        (void)set_up(NULL);
        put(ROWS * fields + 70 * row, step, is_v5 ? v5 : v8, fields);
        assert_int_equal(read_of(&model, &output, 1, 0, NULL), 0);
        assert_int_equal(answer.box_count, 0);
        assert_int_equal(read_of(&model, &output, 1, 1, NULL), 0);
        assert_int_equal(answer.box_count, 1);
        assert_box(0, 160, 180, 80, 40, 1, is_v5 ? 0.375F : 0.75F);
    }
}

static void yolov10_says_which_boxes_count(void **state)
{
    static const float rows[][6] = {{80, 230, 120, 250, 0.75F, 2},
                                    {82, 230, 122, 250, 0.5F, 2}, /* it overlaps, and counts */
                                    {0, 0, 0, 0, 0, 0},
                                    {80, 230, 120, 250, 0.2F, 1}};
    const struct pipeline_model model = model_of(DECODER_YOLOV10);
    struct baton_error error;

    memcpy(values, rows, sizeof(rows));
    assert_int_equal(read_as(DECODER_YOLOV10, &(struct shape){3, {1, 4, 6}}), 2);
    assert_box(0, 160, 180, 80, 40, 2, 0.75F);
    assert_box(1, 164, 180, 80, 40, 2, 0.5F);
    values[5] = CLASSES;
    assert_int_equal(read_of(&model, &(struct tensor){{3, {1, 4, 6}}, values}, 1, 0, &error),
                     BATON_EINVAL);
    assert_string_equal(error.message, "a box of class 3: there are 3 classes");
}

/* With three classes boxes and scores have the same shape. */
static void ssd_s_boxes_and_scores_come_in_any_order(void **state)
{
    static const float boxes[] = {0.125F, 0.375F, 0.1875F, 0.40625F, 0.5F, 0.5F, 0.75F, 0.75F};
    static const float scores[] = {0.55F, 0.05F, 0.4F, 0, 1, 0, 0, 0};
    static const float logits[] = {1, 1, 1 + (float)M_LN2, 1, 9, 0, 0, 0};
    const struct pipeline_model model = model_of(DECODER_SSD);
    const struct shape shape = {3, {1, 2, 4}};

    for (int i = 0; i < 3; i++) {
        struct tensor both[] = {{shape, i == 1 ? scores : boxes},
                                {shape, i == 0   ? scores
                                        : i == 1 ? boxes
                                                 : logits}};
        assert_int_equal(read_of(&model, both, 2, 0, NULL), 0);
        assert_int_equal(answer.box_count, 1);
        assert_box(0, 160, 200, 80, 40, 1, 0.4F);
    }
}

/* The prior of the third row: the second cell of eight pixels, its smaller side of 16. */
static void retinaface_moves_its_priors(void **state)
{
    static float offsets[PRIORS * 4], scores[PRIORS * 2], marks[PRIORS * 10];
    struct pipeline_model model = model_of(DECODER_RETINAFACE);
    const struct tensor all[] = {{{3, {1, PRIORS, 4}}, offsets},
                                 {{3, {1, PRIORS, 2}}, scores},
                                 {{3, {1, PRIORS, 10}}, marks}};
    const float row[] = {1.25F, -1.25F, 5 * (float)M_LN2, 0};

    model.class_count = 1;
    model.input.width = model.input.height = 64;
    fit_init(&fit, (int[]){0, 0, 64, 64}, 64, 64, false);
    memcpy(offsets + 8, row, sizeof(row));
    for (size_t i = 0; i < PRIORS; i++) {
        scores[2 * i] = i == 2 ? 0.25F : 1;
    }
    scores[5] = 0.75F;
    assert_int_equal(read_of(&model, all, 3, 0, NULL), 0);
    assert_int_equal(answer.box_count, 1);
    assert_box(0, 0, 0, 30, 10, 0, 0.75F); /* middle 14, 2; sides 32, 16 */
    model.input.width = 72;
    assert_int_equal(read_of(&model, all, 3, 0, NULL), BATON_EPROTO);
}

static void boxes_that_overlap_are_one_unless_their_classes_differ(void **state)
{
    static const float rows[][7] = {{100, 300, 40, 40, 0.5F, 0, 0},
                                    {104, 300, 40, 40, 0.75F, 0, 0},  /* 36/44 */
                                    {124, 300, 40, 40, 0.625F, 0, 0}, /* 20/60 with the second */
                                    {104, 300, 40, 40, 0, 0.375F, 0}};

    memcpy(values, rows, sizeof(rows));
    assert_int_equal(read_as(DECODER_YOLOV8, &(struct shape){3, {1, 4, 7}}), 3);
    assert_box(0, 168, 280, 80, 80, 0, 0.75F);
    assert_box(1, 208, 280, 80, 80, 0, 0.625F);
    assert_box(2, 168, 280, 80, 80, 1, 0.375F);
    assert_string_equal(answer.reading.text, "ABA"); /* from left to right, as letters */
}

static void what_is_no_box_is_none(void **state)
{
    static const float rows[][8] = {
        {NAN, 300, 40, 40, 1, 0.9F, 0, 0},      {100, INFINITY, 40, 40, 1, 0.9F, 0, 0},
        {100, 300, -40, 40, 1, 0.9F, 0, 0},     {100, 300, 40, 0, 1, 0.9F, 0, 0},
        {100, 300, 40, NAN, 1, 0.9F, 0, 0},     {100, 300, 40, 40, 1, NAN, NAN, NAN},
        {100, 300, 40, 40, 1, 0, INFINITY, 0},  {100, 300, 40, 40, NAN, 0.9F, 0, 0},
        {100, 300, 40, 40, 1, 0.25F, 0.1F, 0},  {100, 40, 40, 40, 1, 0.9F, 0, 0},
        {3e38F, 300, 3e38F, 40, 1, 0.9F, 0, 0}, {-3e38F, 300, 40, 40, 1, 0.9F, 0, 0},
        {100, 300, 40, 40, -1, -0.9F, -1, -1},  {0, 140, 1e30F, 100, 1, NAN, 2, NAN}};

    memcpy(values, rows, sizeof(rows));
    assert_int_equal(
        read_as(DECODER_YOLOV5, &(struct shape){3, {1, sizeof(rows) / sizeof(rows[0]), 8}}), 1);
    assert_box(0, 0, 0, 1280, 100, 1, 1); /* cut to the picture */
}

static void of_too_many_boxes_the_best_stay(void **state)
{
    enum { MANY = CANDIDATES_MAX + 100 };
    static float many[MANY * 6];

    for (int i = 0; i < MANY; i++) {
        const float row[] = {
            (float)(i % 600), 200, (float)(i % 600 + 8), 210, 0.3F + (float)i / (2 * MANY), 0};
        memcpy(many + (size_t)i * 6, row, sizeof(row));
    }
    const struct pipeline_model model = model_of(DECODER_YOLOV10);
    assert_int_equal(read_of(&model, &(struct tensor){{3, {1, MANY, 6}}, many}, 1, 0, NULL), 0);
    assert_int_equal(answer.box_count, BOXES_MAX);
    assert_float_equal(answer.boxes[0].score, many[(MANY - 1) * 6 + 4], 1e-6);
    assert_float_equal(answer.boxes[BOXES_MAX - 1].score, many[(MANY - BOXES_MAX) * 6 + 4], 1e-6);
}

static void a_classifier_s_numbers_are_probabilities_or_become_some(void **state)
{
    static const struct {
        float values[CLASSES];
        int label;
        float score;
    } cases[] = {{{0.125F, 0.625F, 0.25F}, 1, 0.625F},
                 {{0, (float)M_LN2, -INFINITY}, 1, 2.0F / 3},
                 {{3e38F, 0, 3e38F}, 0, 0.5F},
                 {{0, 1, INFINITY}, 2, 1},
                 {{NAN, 0.2F, 0.1F}, -1, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct pipeline_model model = model_of(DECODER_CLASSIFY);
        const struct tensor output = {{2, {1, CLASSES}}, cases[i].values};
        struct baton_error error = {0};
        int code = read_of(&model, &output, 1, 0, &error);

        assert_int_equal(code, cases[i].label < 0 ? BATON_EINVAL : 0);
        assert_true(!code || strstr(error.message, "classifier's 3 numbers is NaN"));
        assert_true(code || answer.boxes[0].label == cases[i].label);
        assert_true(code || fabsf(answer.boxes[0].score - cases[i].score) < 1e-6F);
    }
}

static void say(const int *labels, size_t steps, bool is_transposed)
{
    for (size_t i = 0; i < steps * CLASSES; i++) {
        size_t step = is_transposed ? i % steps : i / CLASSES;
        size_t class = is_transposed ? i / steps : i % CLASSES;
        values[i] = (int)class == labels[step] ? 0.7F : 0.15F;
    }
}

static void letters_are_read_step_by_step(void **state)
{
    static const int labels[] = {1, 1, 0, 1, 2, 2};
    struct pipeline_model model = model_of(DECODER_TENSOR);
    struct tensor output = {{3, {1, 6, CLASSES}}, values};

    say(labels, 6, false);
    assert_int_equal(read_of(&model, &output, 1, 0, NULL), 0);
    assert_string_equal(answer.reading.text, "BBABÜÜ");
    model.blank = 0;
    assert_int_equal(read_of(&model, &output, 1, 0, NULL), 0);
    assert_string_equal(answer.reading.text, "BBÜ");
    assert_float_equal(answer.reading.confidence, 0.7F, 1e-6);
    say(labels, 6, true);
    output.shape = (struct shape){3, {1, CLASSES, 6}};
    assert_int_equal(read_of(&model, &output, 1, 0, NULL), 0);
    assert_string_equal(answer.reading.text, "BBÜ");
    values[0] = NAN; /* the first step has no letter */
    values[1] = NAN;
    assert_int_equal(read_of(&model, &output, 1, 0, NULL), 0);
    assert_string_equal(answer.reading.text, "BÜ");
}

static void a_text_ends_at_a_whole_letter(void **state)
{
    static int labels[200];

    for (int i = 0; i < 200; i++) {
        labels[i] = 2;
    }
    say(labels, 200, false);
    assert_int_equal(read_as(DECODER_TENSOR, &(struct shape){2, {200, CLASSES}}), 1);
    assert_int_equal(strlen(answer.reading.text), ANSWER_TEXT_MAX / 2 * 2);
}

static void an_output_without_boxes_is_an_answer(void **state)
{
    assert_int_equal(read_as(DECODER_YOLOV8, &(struct shape){3, {1, 7, 0}}), 0);
    assert_int_equal(read_as(DECODER_YOLOV8, &(struct shape){2, {0, 7}}), 0);
    assert_int_equal(read_as(DECODER_YOLOV10, &(struct shape){3, {1, 0, 6}}), 0);
}

static void a_form_is_known_by_its_shapes(void **state)
{
    static const struct {
        enum pipeline_decoder decoder;
        struct shape shapes[2];
        bool fits;
    } cases[] = {
        {DECODER_YOLOV8, {{3, {1, 7, 100}}}, true},
        {DECODER_YOLOV8, {{3, {1, 9, 100}}}, false},
        {DECODER_YOLOV8, {{3, {0, 7, 100}}}, false},
        {DECODER_YOLOV8, {{4, {1, 1, 7, 100}}}, false},
        {DECODER_YOLOV8, {{3, {1, 7, 100}}, {4, {1, 32, 8, 8}}}, true},
        {DECODER_YOLOV5, {{3, {1, 100, 8}}}, true},
        {DECODER_YOLOV5, {{3, {1, 100, 7}}}, false},
        {DECODER_YOLOV10, {{3, {1, 300, 6}}}, true},
        {DECODER_YOLOV10, {{3, {1, 300, 7}}}, false},
        {DECODER_SSD, {{3, {1, 9, 4}}, {3, {1, 9, 4}}}, true},
        {DECODER_SSD, {{3, {1, 9, 4}}, {3, {1, 8, 4}}}, false},
        {DECODER_SSD, {{3, {1, 9, 4}}}, false},
        {DECODER_CLASSIFY, {{2, {1, 3}}}, true},
        {DECODER_CLASSIFY, {{2, {1, 4}}}, false},
        {DECODER_TENSOR, {{3, {1, 8, 3}}}, true},
        {DECODER_TENSOR, {{3, {1, 8, 4}}}, false},
        {DECODER_TENSOR, {{3, {2, 3, 8}}}, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct pipeline_model model = model_of(cases[i].decoder);
        const struct tensor all[] = {{cases[i].shapes[0], NULL}, {cases[i].shapes[1], NULL}};
        int count = cases[i].shapes[1].rank > 0 ? 2 : 1;
        if (answer_prove(&model, all, count, 1, NULL) != (cases[i].fits ? 0 : BATON_EPROTO)) {
            fail_msg("case %zu", i);
        }
        assert_int_equal(answer_prove(&model, all, 0, 1, NULL), BATON_EPROTO);
    }
}

static void a_refusal_names_the_forms_and_the_one_that_fits(void **state)
{
    const struct pipeline_model model = model_of(DECODER_YOLOV5);
    struct baton_error error;

    assert_int_equal(answer_prove(&model, &(struct tensor){{3, {1, 7, 8400}}, NULL}, 1, 1, &error),
                     BATON_EPROTO);
    assert_string_equal(
        error.message,
        "output [1, 7, 8400] does not fit 3 classes as yolov5; it fits decoder yolov8; known are "
        "yolov5 [batch, N, 8], yolov8 [batch, 7, N], yolov10 [batch, N, 6], ssd [batch, N, 4] and "
        "[batch, N, 4], retinaface as ssd, for the input's priors, classify [batch, 3], tensor any "
        "numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(yolo_is_read_in_either_order_of_its_sides, set_up),
        cmocka_unit_test_setup(yolov10_says_which_boxes_count, set_up),
        cmocka_unit_test_setup(ssd_s_boxes_and_scores_come_in_any_order, set_up),
        cmocka_unit_test_setup(retinaface_moves_its_priors, set_up),
        cmocka_unit_test_setup(boxes_that_overlap_are_one_unless_their_classes_differ, set_up),
        cmocka_unit_test_setup(what_is_no_box_is_none, set_up),
        cmocka_unit_test_setup(of_too_many_boxes_the_best_stay, set_up),
        cmocka_unit_test_setup(a_classifier_s_numbers_are_probabilities_or_become_some, set_up),
        cmocka_unit_test_setup(letters_are_read_step_by_step, set_up),
        cmocka_unit_test_setup(a_text_ends_at_a_whole_letter, set_up),
        cmocka_unit_test_setup(an_output_without_boxes_is_an_answer, set_up),
        cmocka_unit_test_setup(a_form_is_known_by_its_shapes, set_up),
        cmocka_unit_test_setup(a_refusal_names_the_forms_and_the_one_that_fits, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "cmocka_all.h"

#include "detector/infer/runner_int.h"

#include <math.h>
#include <string.h>

enum { CLASSES = 3 };

static char *names[] = {(char *)"red", (char *)"green", (char *)"blue"};
static const struct fit fit = {{0, 0, 64, 64}, 64, 64, {0, 0, 64, 64}};
static struct answer answer;

static struct pipeline_model model_of(enum pipeline_decoder decoder)
{
    return (struct pipeline_model){.name = (char *)"m",
                                   .file = (char *)"m.onnx",
                                   .decoder = decoder,
                                   .classes = names,
                                   .class_count = CLASSES,
                                   .blank = -1,
                                   .nms = 0.5F};
}

static int read_one(enum pipeline_decoder decoder, const struct tensor *output,
                    struct baton_error *reterr)
{
    const struct pipeline_model model = model_of(decoder);

    return answer_read(&answer, &model, output, 1, 1, 0, &fit, 0.1F, reterr);
}

/* A softmax over the others would make the best of them look sure. */
static void a_class_is_not_told_from_numbers_of_which_one_is_none(void **state)
{
    const float broken[] = {NAN, 0.2F, 0.1F}, whole[] = {0.7F, 0.2F, 0.1F};
    struct tensor output = {{2, {1, CLASSES}}, broken};
    struct baton_error error = {0};

    (void)state;
    assert_int_equal(read_one(DECODER_CLASSIFY, &output, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "one of the classifier's 3 numbers is NaN"));
    output.values = whole;
    assert_int_equal(read_one(DECODER_CLASSIFY, &output, NULL), 0);
    assert_float_equal(answer.confidence, 0.7F, 1e-6);
}

static void a_letter_is_not_told_from_numbers_of_which_one_is_none(void **state)
{
    const float steps[] = {0.7F, 0.2F, 0.1F, NAN, 0.2F, 0.1F};
    const struct tensor output = {{3, {1, 2, CLASSES}}, steps};

    (void)state;
    assert_int_equal(read_one(DECODER_TENSOR, &output, NULL), 0);
    assert_string_equal(answer.reading.text, "red");
    assert_float_equal(answer.reading.confidence, 0.7F, 1e-6);
}

/* Models that keep only what they are sure of say so with a side of 0. */
static void an_output_of_no_boxes_is_an_answer(void **state)
{
    static const struct tensor outputs[] = {{{3, {1, 4 + CLASSES, 0}}, NULL},
                                            {{3, {1, 0, 4 + CLASSES}}, NULL},
                                            {{2, {0, 4 + CLASSES}}, NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        assert_int_equal(read_one(DECODER_YOLOV8, &outputs[i], NULL), 0);
        assert_int_equal(answer.box_count, 0);
    }
}

static void what_does_not_fit_its_decoder_is_known_by_its_form(void **state)
{
    static const struct {
        enum pipeline_decoder decoder;
        struct shape shape;
        bool is_right;
    } cases[] = {
        {DECODER_YOLOV8, {3, {1, 4 + CLASSES, 100}}, true},
        {DECODER_YOLOV8, {3, {1, 4 + CLASSES, 0}}, true},
        {DECODER_YOLOV8, {3, {1, 9, 7}}, true}, /* transposed */
        {DECODER_YOLOV8, {3, {1, 9, 100}}, false},
        {DECODER_YOLOV8, {3, {0, 4 + CLASSES, 100}}, false},
        {DECODER_YOLOV5, {3, {1, 100, 5 + CLASSES}}, true},
        {DECODER_YOLOV5, {3, {1, 100, 4 + CLASSES}}, false},
        {DECODER_CLASSIFY, {2, {1, CLASSES}}, true},
        {DECODER_CLASSIFY, {2, {1, 4}}, false},
        {DECODER_TENSOR, {3, {1, 8, CLASSES}}, true},
        {DECODER_TENSOR, {3, {1, 8, 4}}, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct pipeline_model model = model_of(cases[i].decoder);
        const struct tensor output = {cases[i].shape, NULL}; /* what it says is not looked at */
        int code = answer_prove(&model, &output, 1, NULL);
        if (code != (cases[i].is_right ? 0 : BATON_EINVAL)) {
            fail_msg("case %zu: %d", i, code);
        }
        assert_int_equal(answer_prove(&model, &output, 0, NULL), BATON_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_is_not_told_from_numbers_of_which_one_is_none),
        cmocka_unit_test(a_letter_is_not_told_from_numbers_of_which_one_is_none),
        cmocka_unit_test(an_output_of_no_boxes_is_an_answer),
        cmocka_unit_test(what_does_not_fit_its_decoder_is_known_by_its_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

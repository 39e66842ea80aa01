/* What a model says, or a child that was taken over: any shapes, any numbers. What is read from it
 * lies within the cut, in bounds, and is a number.
 *
 *   decoder, classes, blank, pictures, outputs | rank, sides … of each output | numbers
 */
#include "base/invariant.h"
#include "detector/infer/decoder.h"
#include "detector/infer/runner.h"
#include "detector/infer/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 4096, CLASSES_MAX = 16, OUTPUTS_MAX = 3, BATCH_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
    const uint8_t *at;
    size_t left;
};

static unsigned next(struct input *input)
{
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->at++;
}

/* Bytes to numbers of all kinds. */
static float *numbers_of(struct input *input, size_t count)
{
    float *ret = calloc(count, sizeof(*ret));
    size_t bytes = count * sizeof(*ret) < input->left ? count * sizeof(*ret) : input->left;

    INVARIANT(ret != NULL);
    if (bytes > 0) {
        memcpy(ret, input->at, bytes);
        input->at += bytes;
        input->left -= bytes;
    }
    return ret;
}

static bool read_output(struct input *input, struct tensor *ret)
{
    int64_t count;

    *ret = (struct tensor){.shape = {.rank = (int)(next(input) % 5)}};
    for (int i = 0; i < ret->shape.rank; i++) {
        ret->shape.sides[i] = (int64_t)next(input);
    }
    count = shape_numbers(&ret->shape);
    if (count < 1 || count > NUMBERS_MAX) {
        return false;
    }
    ret->values = numbers_of(input, (size_t)count);
    return true;
}

static void check(const struct answer *answer, const struct pipeline_model *model,
                  const struct fit *fit)
{
    const int *cut = fit->source;

    INVARIANT(answer->box_count >= 0 && answer->box_count <= BOXES_MAX);
    for (int i = 0; i < answer->box_count; i++) {
        const struct box *box = &answer->boxes[i];
        INVARIANT(isfinite(box->x) && isfinite(box->y) && isfinite(box->score));
        INVARIANT(box->x >= (float)cut[0] && box->y >= (float)cut[1]);
        INVARIANT(box->width >= 0 && box->x + box->width <= (float)(cut[0] + cut[2]) + 0.01F);
        INVARIANT(box->height >= 0 && box->y + box->height <= (float)(cut[1] + cut[3]) + 0.01F);
        INVARIANT(box->label >= 0 && (size_t)box->label < model->class_count + 1);
    }
    INVARIANT(strlen(answer->reading.text) <= ANSWER_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct answer answer;
    static struct wire_answer wire;
    static const char *names[CLASSES_MAX] = {"-", "A", "B", "C", "D", "E", "F", "G",
                                             "H", "I", "J", "K", "L", "M", "N", "O"};
    struct input input = {data, bytes};
    struct pipeline_model model = {.decoder = (enum pipeline_decoder)(next(&input) % DECODER_COUNT),
                                   .input = {.width = 32, .height = 16},
                                   .class_count = 1 + next(&input) % CLASSES_MAX,
                                   .classes = names,
                                   .nms = 0.45F};
    struct tensor outputs[OUTPUTS_MAX];
    int64_t pictures;
    int count = 0;
    int wanted;
    struct fit fit;

    model.blank = (int)(next(&input) % (model.class_count + 1)) - 1;
    if (model.decoder == DECODER_TENSOR && next(&input) % 2) {
        model.class_count = 0;
    }
    pictures = 1 + (int64_t)(next(&input) % BATCH_MAX);
    wanted = 1 + (int)(next(&input) % OUTPUTS_MAX);
    fit_init(&fit, (int[]){10, 20, 300, 200}, 320, 192, next(&input) % 2);
    while (count < wanted && read_output(&input, &outputs[count])) {
        count++;
    }
    for (int64_t i = 0; i < pictures && count > 0; i++) {
        const struct outputs read = {&model, outputs, count, pictures, i, &fit, 0.1F};
        (void)answer_read(&answer, &read, NULL);
        check(&answer, &model, &fit);
    }
    for (int i = 0; i < count; i++) {
        free((void *)outputs[i].values);
    }
    memcpy(&wire, data, bytes < sizeof(wire) ? bytes : sizeof(wire));
    if (answer_check(&wire, sizeof(wire))) {
        INVARIANT(wire.output_count >= 0 && wire.output_count <= SESSION_OUTPUTS_MAX);
        INVARIANT(strlen(wire.error) < sizeof(wire.error));
        for (int i = 0; i < wire.output_count; i++) {
            INVARIANT(wire.shapes[i].rank >= 0 && wire.shapes[i].rank <= SHAPE_RANK_MAX);
        }
    }
    return 0;
}

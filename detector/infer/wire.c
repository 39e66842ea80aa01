#include "detector/infer/wire.h"

bool answer_check(struct wire_answer *answer, size_t bytes)
{
    bool is_right = bytes == sizeof(*answer) && answer->code <= 0 &&
                    answer->code >= BATON_ECLOSED && answer->batch_max >= 0 &&
                    answer->output_count >= 0 && answer->output_count <= SESSION_OUTPUTS_MAX;

    answer->error[sizeof(answer->error) - 1] = '\0';
    answer->name[sizeof(answer->name) - 1] = '\0';
    for (int i = 0; is_right && i < answer->output_count; i++) {
        size_t count;
        is_right = shape_numbers(&answer->shapes[i], &count);
    }
    return is_right;
}

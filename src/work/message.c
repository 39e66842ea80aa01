/* What messages own. */
#include "work/message.h"

#include <stdlib.h>
#include <string.h>

void work_result_fini(struct work_result *result)
{
    free(result->id);
    free(result->output);
    *result = (struct work_result){0};
}

int work_result_copy(struct work_result *to, const struct work_result *from)
{
    struct work_result copy = *from;
    size_t skipped =
        from->output_bytes > WORK_OUTPUT_MAX ? from->output_bytes - WORK_OUTPUT_MAX : 0;

    copy.output_bytes -= skipped;
    copy.id = from->id ? strdup(from->id) : NULL;
    copy.output = copy.output_bytes > 0 ? malloc(copy.output_bytes) : NULL;
    if ((from->id && !copy.id) || (copy.output_bytes > 0 && !copy.output)) {
        free(copy.id);
        free(copy.output);
        return BATON_ENOMEM;
    }
    if (copy.output) {
        memcpy(copy.output, from->output + skipped, copy.output_bytes);
    }
    *to = copy;
    return BATON_OK;
}

void work_claim_fini(struct work_claim *claim)
{
    free(claim->id);
    work_keys_free(claim->keys);
    work_item_unref(claim->item);
    *claim = (struct work_claim){0};
}

void work_report_fini(struct work_report *report)
{
    for (size_t i = 0; i < report->claim_count; i++) {
        work_claim_fini(&report->claims[i]);
    }
    free(report->claims);
    report->claims = NULL;
    report->claim_count = 0;
}

static bool copy_claim(struct work_claim *to, const struct work_claim *from)
{
    *to = *from;
    to->id = strdup(from->id);
    to->keys = NULL;
    to->item = from->item ? work_item_ref(from->item) : NULL;
    return to->id &&
           (!from->keys || work_keys_copy(&to->keys, (const char *const *)from->keys) == BATON_OK);
}

int work_report_copy(struct work_report *to, const struct work_report *from)
{
    struct work_report copy = *from;

    copy.claim_count = 0;
    copy.claims = calloc(from->claim_count + 1, sizeof(*copy.claims));
    for (size_t i = 0; copy.claims && i < from->claim_count; i++) {
        copy.claim_count++;
        if (!copy_claim(&copy.claims[i], &from->claims[i])) {
            work_report_fini(&copy);
        }
    }
    if (!copy.claims) {
        return BATON_ENOMEM;
    }
    *to = copy;
    return BATON_OK;
}

void work_message_fini(struct work_message *message)
{
    for (size_t i = 0; i < message->count; i++) {
        if (message->assignments) {
            work_item_unref(message->assignments[i].item);
        }
        if (message->ids) {
            work_claim_fini(&message->ids[i]);
        }
    }
    free(message->assignments);
    free(message->ids);
    message->assignments = NULL;
    message->ids = NULL;
    message->count = 0;
    work_report_fini(&message->report);
    work_result_fini(&message->result);
}

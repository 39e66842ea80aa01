/* A message between the leader of a pool and its workers, and the value of a result. What was read
 * is written, and then comes back as the same bytes again. */
#include "work/message.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void write_twice(const struct work_message *message)
{
    struct work_message again = {0};
    struct buffer first, second;

    buffer_init(&first, 4 * WORK_MESSAGE_MAX);
    buffer_init(&second, 4 * WORK_MESSAGE_MAX);
    work_message_write(message, &first);
    expect(!first.failed);
    if (first.bytes <= WORK_MESSAGE_MAX) {
        expect(work_message_read(&again, first.data, first.bytes, NULL) == BATON_OK);
        work_message_write(&again, &second);
        expect(second.bytes == first.bytes && memcmp(first.data, second.data, first.bytes) == 0);
        work_message_fini(&again);
    }
    buffer_fini(&first);
    buffer_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct work_message message;
    struct work_result result;
    struct baton_error error = {0};

    if (work_message_read(&message, data, bytes, &error) == BATON_OK) {
        write_twice(&message);
        work_message_fini(&message);
    } else {
        expect(error.code != BATON_OK && error.message[0] != '\0');
    }
    if (work_result_read(&result, data, bytes, NULL) == BATON_OK) {
        work_result_fini(&result);
    }
    return 0;
}

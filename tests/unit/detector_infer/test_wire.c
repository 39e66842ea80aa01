#include "cmocka_all.h"

#include "detector/infer/wire.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire_answer answer;

static void refuse(void)
{
    assert_false(answer_check(&answer, sizeof(answer)));
    answer = (struct wire_answer){0};
}

static void what_is_out_of_bounds_is_refused(void **state)
{
    (void)state;
    assert_true(answer_check(&answer, sizeof(answer)));
    answer.code = 1;
    refuse();
    answer.code = BATON_ECLOSED - 1;
    refuse();
    answer.batch_max = -1;
    refuse();
    answer.output_count = SESSION_OUTPUTS_MAX + 1;
    refuse();
    answer.output_count = -1;
    refuse();
    answer.output_count = 2;
    answer.shapes[1].rank = SHAPE_RANK_MAX + 1;
    refuse();
    answer.output_count = 1;
    answer.shapes[0] = (struct shape){2, {1 << 20, 1 << 20}};
    refuse();
    assert_false(answer_check(&answer, sizeof(answer) - 1));
    assert_false(answer_check(&answer, sizeof(answer) + 1));
}

static void every_text_ends(void **state)
{
    (void)state;
    memset(answer.error, 'x', sizeof(answer.error));
    memset(answer.name, 'x', sizeof(answer.name));
    assert_true(answer_check(&answer, sizeof(answer)));
    assert_int_equal(strlen(answer.error), sizeof(answer.error) - 1);
    assert_int_equal(strlen(answer.name), ENGINE_NAME_MAX);
}

static void requests_take_descriptors_along(void **state)
{
    const struct wire_request sent = {.type = WIRE_OPEN, .session = 7, .model_bytes = 123};
    const struct wire_request run = {.type = WIRE_RUN, .session = 8, .pictures = 9};
    struct wire_request received;
    int sockets[2], ends[2], fds[2];
    char byte = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(pipe(ends), 0);
    assert_true(wire_send(sockets[0], &sent, ends[1], -1));
    assert_true(wire_receive(sockets[1], &received, fds));
    assert_int_equal(received.session, 7);
    assert_int_equal(fds[1], -1);
    assert_int_equal(write(fds[0], "!", 1), 1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, '!');
    assert_true(wire_send(sockets[0], &sent, -1, -1));
    assert_true(wire_receive(sockets[1], &received, ends));
    assert_int_equal(ends[0], -1);
    assert_true(wire_send(sockets[0], &run, -1, -1));
    assert_true(wire_receive(sockets[1], &received, ends));
    assert_int_equal(received.type, WIRE_RUN);
    assert_int_equal(received.session, 8);
    assert_int_equal(received.pictures, 9);
    assert_int_equal(send(sockets[0], &sent, sizeof(sent) - 1, 0), sizeof(sent) - 1);
    assert_false(wire_receive(sockets[1], &received, ends));
    assert_int_equal(send(sockets[0], "short", 5, 0), 5);
    assert_false(wire_receive(sockets[1], &received, ends));
    (void)close(sockets[0]);
    assert_false(wire_receive(sockets[1], &received, ends));
    (void)close(sockets[1]);
    (void)close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_out_of_bounds_is_refused),
        cmocka_unit_test(every_text_ends),
        cmocka_unit_test(requests_take_descriptors_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Frames: an encoded frame decodes to the same bytes, and any other bytes are refused. */
#include "cmocka_all.h"
#include "guardian/certificate.h"
#include "provider/raft/frame.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t cluster = 0x12345678;
static struct frame_scratch scratch;
static struct buffer buffer;

static int set_up(void **state)
{
    buffer_init(&buffer, FRAME_BYTES_MAX + 64);
    return 0;
}

static int tear_down(void **state)
{
    buffer_fini(&buffer);
    frame_scratch_fini(&scratch);
    return 0;
}

static size_t bytes_of(const struct raft_message *message)
{
    buffer_clear(&buffer);
    frame_put_message(&buffer, cluster, message);
    assert_false(buffer.failed);
    return buffer.bytes;
}

static struct raft_message back(const struct raft_message *message)
{
    struct frame frame;
    size_t bytes = bytes_of(message);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes), bytes);
    assert_int_equal(frame.type, FRAME_MESSAGE);
    assert_int_equal(frame.message.type, message->type);
    assert_true(frame.message.term == message->term);
    return frame.message;
}

static void a_round_of_votes_among_ten_nodes_is_below_a_kilobyte(void **state)
{
    struct raft_message ask = {.type = RAFT_MSG_VOTE, .term = 7};
    struct raft_message answer = {.type = RAFT_MSG_VOTE_REPLY, .term = 7};

    assert_true(bytes_of(&ask) <= 64);
    assert_true(bytes_of(&answer) <= 64);
    assert_true(9 * (bytes_of(&ask) + bytes_of(&answer)) <= 1024);
    assert_int_equal(9 * (bytes_of(&ask) + bytes_of(&answer)), 909);
    ask.type = RAFT_MSG_PRE_VOTE;
    answer.type = RAFT_MSG_PRE_VOTE_REPLY;
    assert_int_equal(9 * (bytes_of(&ask) + bytes_of(&answer)), 765);
}

static void votes_come_back_with_their_proof(void **state)
{
    struct raft_message message = {.type = RAFT_MSG_PRE_VOTE, .term = 1u << 30};
    struct raft_message got;
    message.vote.last_index = 5;
    message.vote.last_term = 4;
    message.vote.proof = (struct raft_proof){
        .node = UINT64_MAX - 1, .incarnation = 9, .through_term = RAFT_TERM_FOREVER};
    got = back(&message);
    assert_memory_equal(&got.vote, &message.vote, sizeof(got.vote));
    message.type = RAFT_MSG_VOTE_REPLY;
    message.vote_reply.granted = true;
    message.vote_reply.promised = SPAN_S(5);
    message.vote_reply.promised_to = UINT64_MAX - 3;
    got = back(&message);
    assert_true(got.vote_reply.granted);
    assert_true(got.vote_reply.promised.ns == SPAN_S(5).ns);
    assert_true(got.vote_reply.promised_to == UINT64_MAX - 3);
}

static void heartbeats_come_back(void **state)
{
    struct raft_message message = {.type = RAFT_MSG_HEARTBEAT, .term = 3};
    struct raft_message got;
    message.heartbeat.sent.ns = 123456789012345;
    message.heartbeat.lease = SPAN_S(5);
    message.heartbeat.commit = 8;
    message.heartbeat.heir = 77;
    message.heartbeat.read_round = 6;
    got = back(&message);
    assert_true(got.heartbeat.sent.ns == 123456789012345);
    assert_true(got.heartbeat.lease.ns == SPAN_S(5).ns);
    assert_true(got.heartbeat.heir == 77 && got.heartbeat.read_round == 6);
    message = (struct raft_message){.type = RAFT_MSG_HEARTBEAT_REPLY, .term = 3};
    message.heartbeat_reply.sent.ns = -5;
    message.heartbeat_reply.granted = SPAN_MS(75);
    message.heartbeat_reply.may_lead = true;
    message.heartbeat_reply.silence = SPAN_MS(1600);
    got = back(&message);
    assert_true(got.heartbeat_reply.sent.ns == -5 && got.heartbeat_reply.may_lead);
    assert_true(got.heartbeat_reply.granted.ns == SPAN_MS(75).ns);
    assert_true(got.heartbeat_reply.silence.ns == SPAN_MS(1600).ns);
}

static void entries_come_back(void **state)
{
    struct raft_entry entries[2] = {
        {.term = 1, .kind = RAFT_ENTRY_NOOP},
        {.term = 2, .kind = RAFT_ENTRY_DATA, .data = "xyz", .bytes = 3}};
    struct raft_message message = {.type = RAFT_MSG_APPEND, .term = 3};
    struct raft_message got;
    message.append.prev_index = 10;
    message.append.prev_term = 1;
    message.append.commit = 9;
    message.append.entries = entries;
    message.append.entry_count = 2;
    message.append.is_awaited = true;
    got = back(&message);
    assert_int_equal(got.append.entry_count, 2);
    assert_true(got.append.is_awaited);
    assert_int_equal(got.append.entries[1].bytes, 3);
    assert_memory_equal(got.append.entries[1].data, "xyz", 3);
    assert_true(got.append.entries[0].kind == RAFT_ENTRY_NOOP);
    message = (struct raft_message){.type = RAFT_MSG_APPEND_REPLY, .term = 3};
    message.append_reply.rejected = true;
    message.append_reply.hint = 4;
    message.append_reply.hint_term = 2;
    got = back(&message);
    assert_true(got.append_reply.rejected && got.append_reply.hint == 4);
}

static void snapshots_come_back(void **state)
{
    struct raft_member member = {.id = 4, .weight = 1, .name = "d"};
    struct raft_configuration configuration = {.members = &member, .count = 1};
    struct raft_message message = {.type = RAFT_MSG_SNAPSHOT, .term = 3};
    struct raft_message got;
    message.snapshot.index = 20;
    message.snapshot.configuration = &configuration;
    message.snapshot.total_bytes = 5;
    message.snapshot.data = "hello";
    message.snapshot.bytes = 5;
    got = back(&message);
    assert_string_equal(got.snapshot.configuration->members[0].name, "d");
    assert_memory_equal(got.snapshot.data, "hello", 5);
    message.snapshot.configuration = NULL;
    assert_null(back(&message).snapshot.configuration);
    message = (struct raft_message){.type = RAFT_MSG_SNAPSHOT_REPLY, .term = 3};
    message.snapshot_reply.next_offset = 5;
    assert_true(back(&message).snapshot_reply.next_offset == 5);
    message = (struct raft_message){.type = RAFT_MSG_TIMEOUT_NOW, .term = 3, .resign = {.heir = 9}};
    assert_true(back(&message).resign.heir == 9);
    message = (struct raft_message){.type = RAFT_MSG_READ_REPLY, .term = 3};
    message.read.context = 11;
    message.read.index = 12;
    assert_true(back(&message).read.index == 12);
}

static struct greeting greeting(void)
{
    struct greeting ours = {.cluster = "jobs",
                            .name = "a",
                            .expected = "b",
                            .id = 5,
                            .birth = 6,
                            .group = 10,
                            .founders = 11,
                            .incarnation = 7,
                            .term = 12,
                            .last_index = 13,
                            .commit_index = 14,
                            .lease = SPAN_S(5),
                            .heartbeat_timeout = SPAN_S(6),
                            .clock_drift_ppm = 15,
                            .pid = 8,
                            .pid_namespace = 9,
                            .flags = 1};
    memset(ours.commitment, 3, sizeof(ours.commitment));
    return ours;
}

static void a_greeting_comes_back(void **state)
{
    struct greeting ours = greeting();
    struct frame frame;
    frame_put_greeting(&buffer, cluster, &ours);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     buffer.bytes);
    assert_int_equal(frame.type, FRAME_GREETING);
    assert_string_equal(frame.greeting.cluster, "jobs");
    assert_string_equal(frame.greeting.expected, "b");
    assert_memory_equal(frame.greeting.commitment, ours.commitment, 32);
    assert_true(frame.greeting.id == 5 && frame.greeting.birth == 6);
    assert_true(frame.greeting.group == 10 && frame.greeting.founders == 11);
    assert_true(frame.greeting.incarnation == 7 && frame.greeting.term == 12);
    assert_true(frame.greeting.last_index == 13 && frame.greeting.commit_index == 14);
    assert_true(frame.greeting.lease.ns == SPAN_S(5).ns && frame.greeting.clock_drift_ppm == 15);
    assert_true(frame.greeting.heartbeat_timeout.ns == SPAN_S(6).ns);
}

static void a_greeting_without_a_birth_is_refused(void **state)
{
    struct greeting ours = greeting();
    struct frame frame;
    ours.birth = 0;
    frame_put_greeting(&buffer, cluster, &ours);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     BATON_EPROTO);
}

static void a_description_comes_back(void **state)
{
    struct frame frame;
    frame_put_description(&buffer, cluster, 9, GREETING_CORDONED, "{\"a\":1}");
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     buffer.bytes);
    assert_int_equal(frame.type, FRAME_DESCRIPTION);
    assert_true(frame.request_id == 9 && frame.flags == GREETING_CORDONED);
    assert_int_equal(frame.text_bytes, 7);
    assert_memory_equal(frame.text, "{\"a\":1}", 7);
}

static void a_description_that_is_too_long_is_refused(void **state)
{
    char text[FRAME_METADATA_MAX + 2];
    struct frame frame;
    memset(text, 'x', sizeof(text));
    text[FRAME_METADATA_MAX + 1] = '\0';
    frame_put_description(&buffer, cluster, 1, 0, text);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     BATON_EPROTO);
    buffer_clear(&buffer);
    frame_put_description(&buffer, cluster, 1, 0, text + 1);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     buffer.bytes);
}

static void a_part_comes_back(void **state)
{
    const struct part part = {
        .parcel = 3, .parcel_bytes = 100000, .offset = 16320, .data = "abc", .bytes = 3};
    struct frame frame;
    frame_put_part(&buffer, cluster, &part);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     buffer.bytes);
    assert_int_equal(frame.type, FRAME_PART);
    assert_true(frame.part.parcel == 3 && frame.part.offset == 16320);
    assert_true(frame.part.parcel_bytes == 100000 && frame.part.bytes == 3);
    assert_memory_equal(frame.part.data, "abc", 3);
}

static void a_frame_that_is_not_whole_waits_for_more(void **state)
{
    struct raft_message message = {.type = RAFT_MSG_VOTE, .term = 7};
    struct frame frame;
    (void)bytes_of(&message);
    for (size_t i = 0; i < buffer.bytes; i++) {
        assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, i), 0);
    }
}

static int code_after(size_t at, uint8_t value)
{
    struct raft_message message = {.type = RAFT_MSG_VOTE, .term = 7};
    struct frame frame;
    (void)bytes_of(&message);
    buffer.data[at] = value;
    return frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes);
}

static void what_is_not_ours_is_refused_by_its_cause(void **state)
{
    assert_int_equal(code_after(3, 0xff), BATON_ETOOBIG);
    assert_int_equal(code_after(0, 3), BATON_ETOOBIG); /* shorter than any frame */
    assert_int_equal(code_after(4, 9), BATON_ENOTSUP);
    assert_int_equal(code_after(6, 0), BATON_EAUTH);
    assert_int_equal(code_after(20, 0x55), BATON_ECORRUPT);
    assert_int_equal(code_after(5, 77), BATON_ECORRUPT);
}

static void a_term_out_of_this_world_is_refused(void **state)
{
    struct raft_message message = {.type = RAFT_MSG_VOTE, .term = UINT64_MAX};
    struct frame frame;
    (void)bytes_of(&message);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     BATON_EPROTO);
}

static void names_are_printable_words(void **state)
{
    struct greeting ours = greeting();
    struct frame frame;
    strcpy(ours.name, "a\nb");
    frame_put_greeting(&buffer, cluster, &ours);
    assert_int_equal(frame_take(&frame, &scratch, cluster, buffer.data, buffer.bytes),
                     BATON_EPROTO);
}

static void a_certificate_is_taken_whole_or_not_at_all(void **state)
{
    struct certificate certificate = {
        .cluster = cluster, .node = 5, .incarnation = 6, .heir = 7, .secret = {1, 2, 3}};
    struct certificate got;
    uint8_t raw[CERTIFICATE_BYTES];
    struct frame frame;
    certificate_encode(raw, &certificate);
    assert_int_equal(frame_take(&frame, &scratch, cluster, raw, sizeof(raw)), CERTIFICATE_BYTES);
    assert_int_equal(frame.type, FRAME_CERTIFICATE);
    assert_true(certificate_decode(&got, frame.whole, CERTIFICATE_BYTES));
    assert_memory_equal(got.secret, certificate.secret, sizeof(got.secret));
    assert_true(got.heir == 7 && got.incarnation == 6);
    for (size_t i = 0; i < sizeof(raw); i++) { /* a flipped bit anywhere */
        raw[i] ^= 0x10;
        assert_false(certificate_decode(&got, raw, sizeof(raw)));
        raw[i] ^= 0x10;
    }
}

#define FRAME_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRAME_TEST(a_round_of_votes_among_ten_nodes_is_below_a_kilobyte),
        FRAME_TEST(votes_come_back_with_their_proof),
        FRAME_TEST(heartbeats_come_back),
        FRAME_TEST(entries_come_back),
        FRAME_TEST(snapshots_come_back),
        FRAME_TEST(a_greeting_comes_back),
        FRAME_TEST(a_greeting_without_a_birth_is_refused),
        FRAME_TEST(a_description_comes_back),
        FRAME_TEST(a_description_that_is_too_long_is_refused),
        FRAME_TEST(a_part_comes_back),
        FRAME_TEST(a_frame_that_is_not_whole_waits_for_more),
        FRAME_TEST(what_is_not_ours_is_refused_by_its_cause),
        FRAME_TEST(a_term_out_of_this_world_is_refused),
        FRAME_TEST(names_are_printable_words),
        FRAME_TEST(a_certificate_is_taken_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A node of the consensus core among peers that may say anything: stored states, authenticated
 * messages and local inputs are made of the bytes. No input may end the process, and what the core
 * asks to be stored must be a state that it starts from again.
 */
#include "base/buffer.h"
#include "raft/raft.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { SELF = 1, PEERS = 5, ENTRIES_MAX = 4, LOG_MAX = 512, STEPS_MAX = 400, KEPT = 16 };

struct disk {
    struct raft_hard_state hard;
    struct raft_snapshot snapshot; /* owned */
    struct raft_entry log[LOG_MAX];
    size_t count;
};

struct play {
    struct reader reader;
    struct disk disk;
    struct raft *raft;
    uint64_t incarnation;
    instant now;
    uint64_t last_write;
    raft_index applied;
    struct raft_message sent[KEPT]; /* the last ones, without their entries */
    size_t sent_count;
};

/* Mostly small, at times at a limit, at times anything. */
static uint64_t number(struct reader *reader)
{
    static const uint64_t limits[] = {UINT64_MAX,
                                      UINT64_MAX - 1,
                                      (uint64_t)1 << 63,
                                      (uint64_t)1 << 56,
                                      ((uint64_t)1 << 56) - 1,
                                      (uint64_t)1 << 32,
                                      ((uint64_t)1 << 32) + 9,
                                      (uint64_t)INT64_MAX};
    uint8_t tag = reader_u8(reader);

    if (tag < 224) {
        return tag % 16;
    }
    return tag < 248 ? limits[tag % 8] : reader_u64(reader);
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = bytes > 0 ? malloc(bytes) : NULL;

    if (bytes > 0) {
        if (!copy) {
            exit(1);
        }
        memcpy(copy, data, bytes);
    }
    return copy;
}

/* ---- What the bytes make --------------------------------------------------------------------- */

static struct raft_configuration configuration_of(struct reader *reader,
                                                  struct raft_member members[PEERS])
{
    struct raft_configuration made = {.members = members};

    made.is_joint = reader_u8(reader) % 4 == 0;
    for (raft_id id = 1; id <= PEERS; id++) {
        uint8_t how = reader_u8(reader);
        struct raft_member *member = &members[made.count];
        if (how % 4 == 0) {
            continue;
        }
        *member = (struct raft_member){.id = id, .weight = how % 8 < 6 ? 1 : number(reader) % 9};
        member->kind = (enum raft_kind)(how / 8 % 8 < 6 ? RAFT_VOTER : how / 8 % 3);
        member->old_weight = made.is_joint ? how / 64 : 0;
        member->is_leaving = made.is_joint && how % 16 == 7;
        member->name[0] = (char)('a' + id);
        made.count++;
    }
    return made;
}

static void encoded(struct reader *reader, void **ret, size_t *ret_bytes)
{
    struct raft_member members[PEERS];
    struct raft_configuration made = configuration_of(reader, members);

    *ret = NULL;
    *ret_bytes = 0;
    if (raft_configuration_encode(&made, ret, ret_bytes) != BATON_OK) {
        exit(1);
    }
}

static struct raft_entry entry_of(struct reader *reader)
{
    struct raft_entry entry = {.term = number(reader)};
    uint8_t kind = reader_u8(reader);
    void *data = NULL;

    entry.kind = (enum raft_entry_kind)(kind < 250 ? kind % 3 : kind);
    if (entry.kind == RAFT_ENTRY_CONFIGURATION && kind % 5 > 0) {
        encoded(reader, &data, &entry.bytes);
        entry.data = data;
    } else {
        entry.bytes = reader_u8(reader) % 8;
        entry.data = copy_of("abcdefgh", entry.bytes);
    }
    return entry;
}

static void heartbeat_of(struct reader *reader, struct raft_message *message)
{
    if (message->type == RAFT_MSG_HEARTBEAT) {
        message->heartbeat.sent = (instant){(int64_t)number(reader)};
        message->heartbeat.lease = SPAN_NS(number(reader) * 10000000);
        message->heartbeat.commit = number(reader);
        message->heartbeat.heir = number(reader);
        message->heartbeat.heir_term = number(reader);
        message->heartbeat.read_round = number(reader);
    } else {
        message->heartbeat_reply.sent = (instant){(int64_t)(number(reader) * 1000000)};
        message->heartbeat_reply.granted = SPAN_NS(number(reader) * 10000000);
        message->heartbeat_reply.read_round = number(reader);
        message->heartbeat_reply.may_lead = reader_u8(reader) & 1;
        message->heartbeat_reply.silence = SPAN_NS(number(reader) * 10000000);
    }
}

static void message_of(struct reader *reader, struct raft_message *message,
                       struct raft_entry entries[ENTRIES_MAX],
                       struct raft_configuration *configuration)
{
    *message = (struct raft_message){
        .type = (enum raft_message_type)(reader_u8(reader) % (RAFT_MSG_READ_REPLY + 2)),
        .from = reader_u8(reader) % (PEERS + 3),
        .to = SELF,
        .incarnation = number(reader),
        .term = number(reader)};
    switch (message->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        message->vote.last_index = number(reader);
        message->vote.last_term = number(reader);
        message->vote.proof.node = number(reader);
        message->vote.proof.incarnation = number(reader);
        message->vote.proof.through_term = number(reader);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
        message->vote_reply.granted = reader_u8(reader) & 1;
        break;
    case RAFT_MSG_VOTE_REPLY:
        message->vote_reply.granted = reader_u8(reader) & 1;
        message->vote_reply.promised.ns = (int64_t)number(reader);
        message->vote_reply.promised_to = number(reader);
        break;
    case RAFT_MSG_HEARTBEAT:
    case RAFT_MSG_HEARTBEAT_REPLY:
        heartbeat_of(reader, message);
        break;
    case RAFT_MSG_APPEND:
        message->append.prev_index = number(reader);
        message->append.prev_term = number(reader);
        message->append.commit = number(reader);
        message->append.entry_count = reader_u8(reader) % (ENTRIES_MAX + 1);
        for (size_t i = 0; i < message->append.entry_count; i++) {
            entries[i] = entry_of(reader);
        }
        message->append.entries = entries;
        break;
    case RAFT_MSG_APPEND_REPLY:
        message->append_reply.rejected = reader_u8(reader) & 1;
        message->append_reply.index = number(reader);
        message->append_reply.hint = number(reader);
        message->append_reply.hint_term = number(reader);
        break;
    case RAFT_MSG_SNAPSHOT:
        message->snapshot.index = number(reader);
        message->snapshot.snapshot_term = number(reader);
        message->snapshot.configuration = configuration->members ? configuration : NULL;
        message->snapshot.offset = number(reader);
        message->snapshot.total_bytes = number(reader);
        message->snapshot.bytes = reader_u8(reader) % 9;
        message->snapshot.data = "snapshot";
        break;
    case RAFT_MSG_SNAPSHOT_REPLY:
        message->snapshot_reply.index = number(reader);
        message->snapshot_reply.next_offset = number(reader);
        message->snapshot_reply.rejected = reader_u8(reader) & 1;
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_RESIGN:
        message->resign.heir = number(reader);
        break;
    default:
        message->read.context = number(reader);
        message->read.index = number(reader);
        break;
    }
}

/* ---- The disk -------------------------------------------------------------------------------- */

static void cut_log(struct disk *disk, size_t count)
{
    while (disk->count > count) {
        free((void *)disk->log[--disk->count].data);
    }
}

static void drop_first(struct disk *disk, size_t count)
{
    for (size_t i = 0; i < count && i < disk->count; i++) {
        free((void *)disk->log[i].data);
    }
    count = count < disk->count ? count : disk->count;
    memmove(disk->log, disk->log + count, (disk->count - count) * sizeof(disk->log[0]));
    disk->count -= count;
}

static void set_snapshot(struct disk *disk, const struct raft_snapshot *snapshot)
{
    free((void *)disk->snapshot.data);
    raft_configuration_fini(&disk->snapshot.configuration);
    disk->snapshot = *snapshot;
    disk->snapshot.data = copy_of(snapshot->data, snapshot->bytes);
    if (raft_configuration_copy(&disk->snapshot.configuration, &snapshot->configuration) != 0) {
        exit(1);
    }
}

static void store(struct disk *disk, const struct raft_write *write)
{
    if (write->hard) {
        disk->hard = *write->hard;
    }
    if (write->truncates && write->truncate_from > disk->snapshot.index) {
        cut_log(disk, write->truncate_from - disk->snapshot.index - 1);
    }
    if (write->snapshot) {
        drop_first(disk, write->snapshot->index - disk->snapshot.index);
        set_snapshot(disk, write->snapshot);
    }
    for (size_t i = 0; i < write->entry_count && disk->count < LOG_MAX; i++) {
        struct raft_entry *entry = &disk->log[disk->count++];
        *entry = write->entries[i];
        entry->data = copy_of(entry->data, entry->bytes);
    }
}

static void free_disk(struct disk *disk)
{
    cut_log(disk, 0);
    free((void *)disk->snapshot.data);
    raft_configuration_fini(&disk->snapshot.configuration);
}

/* ---- The node -------------------------------------------------------------------------------- */

static int start(struct play *play)
{
    struct raft_start start = {.id = SELF,
                               .incarnation = ++play->incarnation,
                               .seed = play->incarnation,
                               .hard = play->disk.hard,
                               .snapshot = play->disk.snapshot,
                               .entries = play->disk.log,
                               .entry_count = play->disk.count,
                               .eligible = true};

    (void)raft_settings_preset(&start.settings, "fast", NULL);
    start.settings.message_bytes_max = 64;
    play->last_write = 0;
    play->applied = play->disk.snapshot.index;
    return raft_new(&play->raft, &start, play->now, NULL);
}

static void restart(struct play *play)
{
    raft_free(play->raft);
    play->raft = NULL;
    if (start(play) != BATON_OK) {
        abort(); /* a state that the core itself asked to be stored */
    }
}

static void step(struct play *play, const struct raft_input *input, bool is_quick);

static void follow_up(struct play *play, enum raft_input_type type, uint64_t value, bool is_taken)
{
    struct raft_input input = {.type = type};

    if (type == RAFT_IN_WRITTEN) {
        input.write_id = value;
    } else if (type == RAFT_IN_APPLIED) {
        input.index = value;
    } else {
        input.snapshot.index = value;
        input.snapshot.is_taken = is_taken;
    }
    step(play, &input, true);
}

static void step(struct play *play, const struct raft_input *input, bool is_quick)
{
    const struct raft_update *update;
    struct raft_status before, after;
    raft_index offer;

    raft_get_status(play->raft, &before);
    (void)raft_step(play->raft, input, play->now, &update);
    raft_get_status(play->raft, &after);
    offer = update->offer ? update->offer->index : 0;
    if (after.commit_index < before.commit_index || after.term < before.term ||
        (update->apply_count > 0 &&
         update->apply_first != (update->install ? update->install->index : play->applied) + 1)) {
        abort();
    }
    for (size_t i = 0; i < update->message_count; i++) {
        play->sent[play->sent_count++ % KEPT] = update->messages[i];
    }
    play->applied = update->install ? update->install->index : play->applied;
    play->applied += update->apply_count;
    if (update->write) {
        store(&play->disk, update->write);
        play->last_write = update->write->id;
    }
    if (update->write && is_quick) {
        follow_up(play, RAFT_IN_WRITTEN, play->last_write, false);
        follow_up(play, RAFT_IN_APPLIED, play->applied, false);
    }
    if (offer > 0) {
        follow_up(play, RAFT_IN_SNAPSHOT, offer, is_quick);
    }
}

static void take_message(struct play *play, bool is_quick)
{
    struct raft_entry entries[ENTRIES_MAX] = {0};
    struct raft_configuration configuration = {0};
    struct raft_message message;
    struct raft_input input = {.type = RAFT_IN_MESSAGE, .message = &message};
    void *data = NULL;
    size_t bytes = 0;

    encoded(&play->reader, &data, &bytes);
    (void)raft_configuration_decode(&configuration, data, bytes); /* as the wire does */
    free(data);
    message_of(&play->reader, &message, entries, &configuration);
    step(play, &input, is_quick);
    raft_configuration_fini(&configuration);
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        free((void *)entries[i].data);
    }
}

/* A peer does what it was asked for: without that nobody would ever lead. */
static void take_consent(struct play *play)
{
    const struct raft_message *asked = &play->sent[reader_u8(&play->reader) % KEPT];
    struct raft_message message = {.from = asked->to,
                                   .to = SELF,
                                   .incarnation = 1,
                                   .term = asked->term,
                                   .type = (enum raft_message_type)(asked->type + 1)};
    struct raft_input input = {.type = RAFT_IN_MESSAGE, .message = &message};

    switch (asked->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        message.vote_reply.granted = true;
        break;
    case RAFT_MSG_HEARTBEAT:
        message.heartbeat_reply.sent = asked->heartbeat.sent;
        message.heartbeat_reply.granted = asked->heartbeat.lease;
        message.heartbeat_reply.read_round = asked->heartbeat.read_round;
        message.heartbeat_reply.may_lead = true;
        break;
    case RAFT_MSG_APPEND:
        message.append_reply.index = asked->append.prev_index + asked->append.entry_count;
        break;
    case RAFT_MSG_SNAPSHOT:
        message.snapshot_reply.index = asked->snapshot.index;
        message.snapshot_reply.next_offset = asked->snapshot.offset + asked->snapshot.bytes;
        break;
    default:
        return;
    }
    step(play, &input, true);
}

static void take_proof(struct play *play)
{
    struct raft_input input = {.type = RAFT_IN_PROOF};

    input.proof.kind = (enum raft_proof_kind)(reader_u8(&play->reader) % (RAFT_PROOF_VOTE + 1));
    input.proof.proof.node = number(&play->reader);
    input.proof.proof.incarnation = number(&play->reader);
    input.proof.proof.through_term = number(&play->reader);
    input.proof.heir = number(&play->reader);
    step(play, &input, true);
}

static void take_change(struct play *play)
{
    struct raft_member members[PEERS];
    struct raft_configuration wanted = configuration_of(&play->reader, members);
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE};

    input.configuration = &wanted;
    input.is_forced = reader_u8(&play->reader) & 1;
    step(play, &input, true);
}

/* What a driver of our own asks: any of it at any time, but nothing that it must not. */
static void take_order(struct play *play, uint8_t which)
{
    static const struct raft_proposal proposals[] = {
        {.data = "order", .bytes = 5, .asker = SELF + 1},
        {.data = "", .bytes = 0},
        {.data = "x", .bytes = 1}};
    struct raft_input input = {.type = RAFT_IN_TICK};

    switch (which % 10) {
    case 0:
        input.type = RAFT_IN_PROPOSE;
        input.propose.items = proposals;
        input.propose.count =
            reader_u8(&play->reader) % (sizeof(proposals) / sizeof(proposals[0]) + 1);
        break;
    case 1:
        input.type = RAFT_IN_TRANSFER;
        input.transfer.to = number(&play->reader);
        input.transfer.deadline = instant_add(play->now, SPAN_MS(50));
        input.transfer.or_stay = which & 16;
        break;
    case 2:
        input.type = RAFT_IN_ELIGIBLE;
        input.eligible = which & 16;
        break;
    case 3:
        input.type = RAFT_IN_READ;
        input.read.by_lease = which & 16;
        break;
    case 4:
        input.type = RAFT_IN_COMPACT;
        input.compact.index = number(&play->reader);
        break;
    case 5:
        input.type = RAFT_IN_WRITTEN;
        input.write_id = play->last_write;
        break;
    case 6:
        input.type = RAFT_IN_CONNECTION;
        input.connection.peer = number(&play->reader);
        input.connection.is_up = which & 16;
        break;
    case 7:
        input.type = RAFT_IN_DRAINED;
        break;
    default:
        input.type = RAFT_IN_APPLIED;
        input.index = play->applied;
        break;
    }
    step(play, &input, true);
}

static void play_on(struct play *play)
{
    struct raft_input tick = {.type = RAFT_IN_TICK};
    uint8_t what = reader_u8(&play->reader);

    play->now = instant_add(play->now, SPAN_MS(what % 3 * 7));
    if (what < 100) {
        take_message(play, what % 8 > 0);
    } else if (what < 150) {
        take_consent(play);
    } else if (what < 190) {
        play->now = instant_add(play->now, SPAN_MS(what));
        step(play, &tick, true);
    } else if (what < 200) {
        take_proof(play);
    } else if (what < 215) {
        take_change(play);
    } else if (what < 220) {
        restart(play);
    } else {
        take_order(play, reader_u8(&play->reader));
    }
}

/* A stored state of the bytes' making; false: the core refuses to start from it. */
static bool begin(struct play *play)
{
    struct raft_member members[PEERS];
    struct raft_snapshot snapshot = {0};
    size_t count;

    snapshot.configuration = configuration_of(&play->reader, members);
    if (reader_u8(&play->reader) % 4 == 0) {
        snapshot.index = number(&play->reader);
        snapshot.term = number(&play->reader);
    }
    set_snapshot(&play->disk, &snapshot);
    play->disk.hard.term = number(&play->reader);
    play->disk.hard.vote = number(&play->reader) % (PEERS + 1);
    play->disk.hard.promised_max = SPAN_NS(number(&play->reader) * 1000000);
    play->disk.hard.pledged_term = number(&play->reader);
    play->disk.hard.pledged_to = number(&play->reader) % (PEERS + 1);
    count = reader_u8(&play->reader) % ENTRIES_MAX;
    for (size_t i = 0; i < count; i++) {
        play->disk.log[play->disk.count++] = entry_of(&play->reader);
    }
    return start(play) == BATON_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct play play;

    play = (struct play){.reader = reader_of(data, bytes), .now = {1000000000}};
    if (begin(&play)) {
        for (int i = 0; i < STEPS_MAX && play.reader.bytes > 0 && play.disk.count + 64 < LOG_MAX;
             i++) {
            play_on(&play);
        }
        restart(&play);
    }
    raft_free(play.raft);
    free_disk(&play.disk);
    return 0;
}

/* Prints an update: the lease and the events, then the rest in the order in which a driver carries
 * it out: the messages that need no write, the write, the messages that wait for it, the entries to
 * apply. */
#include "transcript.h"

#include <stdarg.h>
#include <string.h>

#define ULL(value) ((unsigned long long)(value))

static double ms(span time)
{
    return (double)time.ns / 1e6;
}

static double since_begin(const struct transcript *transcript, instant at)
{
    return ms(instant_since(at, transcript->begin));
}

void transcript_line(struct transcript *transcript, const char *format, ...)
{
    instant now = transcript->cluster->now;
    va_list arguments;

    if (transcript->is_silent) {
        return;
    }
    if (now.ns != transcript->shown.ns) {
        (void)fprintf(transcript->out, "%10.1f ms  ", since_begin(transcript, now));
        transcript->shown = now;
    } else {
        (void)fprintf(transcript->out, "%15s", "");
    }
    va_start(arguments, format);
    (void)vfprintf(transcript->out, format, arguments);
    va_end(arguments);
    (void)fputc('\n', transcript->out);
}

static bool is_hidden(const struct transcript *transcript, const char *kind)
{
    for (size_t i = 0; i < transcript->hidden_count; i++) {
        if (strcmp(transcript->hidden[i], kind) == 0) {
            return true;
        }
    }
    return false;
}

static void add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void transcript_members(const struct raft_configuration *configuration, char *ret, size_t size)
{
    static const char *const kinds[] = {"", ":witness", ":learner"};

    ret[0] = '\0';
    for (size_t i = 0; i < configuration->count; i++) {
        const struct raft_member *member = &configuration->members[i];
        add(ret, size, "%sn%llu%s", i > 0 ? " " : "", ULL(member->id), kinds[member->kind]);
        if (configuration->is_joint) {
            add(ret, size, "[%u to %u]", member->old_weight, member->weight);
        }
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void describe_vote(const struct raft_message *m, char *text, size_t size)
{
    add(text, size, ", log ends at %llu of term %llu", ULL(m->vote.last_index),
        ULL(m->vote.last_term));
    if (m->vote.proof.node != RAFT_NOBODY) {
        add(text, size, ", proof about n%llu/%llu", ULL(m->vote.proof.node),
            ULL(m->vote.proof.incarnation));
    }
}

static void describe_log(const struct raft_message *m, char *text, size_t size)
{
    switch (m->type) {
    case RAFT_MSG_APPEND:
        add(text, size, ", after %llu of term %llu: ", ULL(m->append.prev_index),
            ULL(m->append.prev_term));
        if (m->append.entry_count == 0) {
            add(text, size, "nothing");
        } else {
            add(text, size, "entries %llu to %llu", ULL(m->append.prev_index + 1),
                ULL(m->append.prev_index + m->append.entry_count));
        }
        add(text, size, ", commit %llu", ULL(m->append.commit));
        break;
    case RAFT_MSG_APPEND_REPLY:
        if (m->append_reply.rejected) {
            add(text, size, ", rejects %llu, try after %llu", ULL(m->append_reply.index),
                ULL(m->append_reply.hint));
        } else {
            add(text, size, ", stored up to %llu", ULL(m->append_reply.index));
        }
        break;
    case RAFT_MSG_SNAPSHOT:
        add(text, size, ", up to %llu, bytes %llu to %llu of %llu", ULL(m->snapshot.index),
            ULL(m->snapshot.offset), ULL(m->snapshot.offset + m->snapshot.bytes),
            ULL(m->snapshot.total_bytes));
        break;
    default: /* RAFT_MSG_SNAPSHOT_REPLY */
        add(text, size, ", up to %llu, %s %llu", ULL(m->snapshot_reply.index),
            m->snapshot_reply.rejected ? "rejected, format" : "next byte",
            m->snapshot_reply.rejected ? ULL(m->snapshot_reply.format)
                                       : ULL(m->snapshot_reply.next_offset));
        break;
    }
}

static void describe(const struct raft_message *m, char *text, size_t size)
{
    (void)snprintf(text, size, "%s, term %llu", raft_message_name(m->type), ULL(m->term));
    switch (m->type) {
    case RAFT_MSG_PRE_VOTE:
    case RAFT_MSG_VOTE:
        describe_vote(m, text, size);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
    case RAFT_MSG_VOTE_REPLY:
        add(text, size, ", %s", m->vote_reply.granted ? "granted" : "refused");
        if (m->vote_reply.promised.ns > 0) {
            add(text, size, ", promises %.0f ms", ms(m->vote_reply.promised));
        }
        break;
    case RAFT_MSG_HEARTBEAT:
        add(text, size, ", asks for %.0f ms, commit %llu", ms(m->heartbeat.lease),
            ULL(m->heartbeat.commit));
        if (m->heartbeat.heir != RAFT_NOBODY) {
            add(text, size, ", heir n%llu in term %llu", ULL(m->heartbeat.heir),
                ULL(m->heartbeat.heir_term));
        }
        break;
    case RAFT_MSG_HEARTBEAT_REPLY:
        add(text, size, ", promises %.0f ms", ms(m->heartbeat_reply.granted));
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_RESIGN:
        add(text, size, m->resign.heir != RAFT_NOBODY ? ", heir n%llu" : ", no heir",
            ULL(m->resign.heir));
        break;
    case RAFT_MSG_READ:
        break;
    case RAFT_MSG_READ_REPLY:
        add(text, size, ", index %llu", ULL(m->read.index));
        break;
    default:
        describe_log(m, text, size);
        break;
    }
}

static bool matches(const struct transcript *transcript, const struct raft_message *message)
{
    return transcript->losses.left > 0 &&
           strcmp(transcript->losses.type, raft_message_name(message->type)) == 0 &&
           (transcript->losses.from == RAFT_NOBODY || transcript->losses.from == message->from) &&
           (transcript->losses.to == RAFT_NOBODY || transcript->losses.to == message->to);
}

static const char *fate(struct transcript *transcript, const struct node *from,
                        const struct raft_message *message, size_t place)
{
    const struct cluster *cluster = transcript->cluster;
    const struct node *to = message->to <= cluster->count ? &cluster->nodes[message->to - 1] : NULL;

    transcript->is_lost[place] = matches(transcript, message);
    if (transcript->is_lost[place]) {
        transcript->losses.left--;
        return "   (lost)";
    }
    return from->is_cut || (to && to->is_cut) ? "   (cut off)" : to && !to->raft ? "   (down)" : "";
}

bool transcript_filter(struct cluster *cluster, const struct raft_message *message)
{
    struct transcript *transcript = cluster->observer;

    return !transcript->is_lost[transcript->sent++];
}

static void print_messages(struct transcript *transcript, const struct node *node,
                           const struct raft_update *update, bool is_after_write)
{
    for (size_t i = 0; i < update->message_count; i++) {
        const struct raft_message *message = &update->messages[i];
        char text[256];
        const char *end;
        if ((message->after_write > 0) != is_after_write) {
            continue;
        }
        describe(message, text, sizeof(text));
        end = fate(transcript, node, message, i);
        if (!is_hidden(transcript, raft_message_name(message->type)) || transcript->is_lost[i]) {
            transcript_line(transcript, "n%llu -> n%llu  %s%s", ULL(message->from),
                            ULL(message->to), text, end);
        }
    }
}

/* ---- Leases, writes, entries ----------------------------------------------------------------- */

static void print_lease(struct transcript *transcript, const struct node *node,
                        const struct raft_lease *lease)
{
    struct raft_lease *before = &transcript->leases[node->id - 1];
    bool is_new = lease->held && (!before->held || before->epoch != lease->epoch);

    if (before->held && !lease->held) {
        transcript_line(transcript, "n%llu  lease of epoch %llu is void", ULL(node->id),
                        ULL(before->epoch));
    } else if (is_new && lease->end.ns == INSTANT_NEVER.ns) {
        transcript_line(transcript, "n%llu  leads in epoch %llu, without end", ULL(node->id),
                        ULL(lease->epoch));
    } else if (is_new || (lease->held && lease->end.ns != before->end.ns &&
                          !is_hidden(transcript, "lease"))) {
        transcript_line(transcript, "n%llu  %s epoch %llu until %.1f ms", ULL(node->id),
                        is_new ? "leads in" : "lease of", ULL(lease->epoch),
                        since_begin(transcript, lease->end));
    }
    *before = *lease;
}

static void print_hard(const struct raft_hard_state *hard, char *text, size_t size)
{
    add(text, size, ", term %llu", ULL(hard->term));
    if (hard->vote != RAFT_NOBODY) {
        add(text, size, ", vote for n%llu", ULL(hard->vote));
    }
    if (hard->promised_max.ns > 0) {
        add(text, size, ", longest promise %.0f ms", ms(hard->promised_max));
    }
    if (hard->pledged_term > hard->term) {
        add(text, size, ", pledge to n%llu in term %llu", ULL(hard->pledged_to),
            ULL(hard->pledged_term));
    }
}

static void print_write(struct transcript *transcript, const struct node *node,
                        const struct raft_write *write)
{
    char text[256] = "";

    if (!write || is_hidden(transcript, "stores")) {
        return;
    }
    if (write->hard) {
        print_hard(write->hard, text, sizeof(text));
    }
    if (write->snapshot) {
        add(text, sizeof(text), ", a snapshot up to %llu", ULL(write->snapshot->index));
    }
    if (write->truncates) {
        add(text, sizeof(text), ", nothing of the old log from %llu on", ULL(write->truncate_from));
    }
    if (write->entry_count > 0) {
        add(text, sizeof(text), ", entries %llu to %llu", ULL(write->first_index),
            ULL(write->first_index + write->entry_count - 1));
    }
    transcript_line(transcript, "n%llu  stores %s", ULL(node->id), text + 2);
}

static void print_applied(struct transcript *transcript, const struct node *node,
                          const struct raft_update *update)
{
    if (update->install) {
        transcript_line(transcript, "n%llu  installs the snapshot up to %llu: %.*s", ULL(node->id),
                        ULL(update->install->index), (int)update->install->bytes,
                        (const char *)update->install->data);
    }
    for (size_t i = 0; i < update->apply_count && !is_hidden(transcript, "applies"); i++) {
        const struct raft_entry *entry = &update->apply[i];
        if (entry->kind == RAFT_ENTRY_DATA) {
            transcript_line(transcript, "n%llu  applies %llu: %.*s", ULL(node->id),
                            ULL(update->apply_first + i), (int)entry->bytes,
                            (const char *)entry->data);
        }
    }
    for (size_t i = 0; i < update->read_count; i++) {
        if (update->reads[i].index > 0) {
            transcript_line(transcript, "n%llu  may read at %llu", ULL(node->id),
                            ULL(update->reads[i].index));
        } else {
            transcript_line(transcript, "n%llu  refuses the read", ULL(node->id));
        }
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void print_membership(struct transcript *transcript, const struct node *node)
{
    char members[256];

    transcript_members(raft_get_configuration(node->raft), members, sizeof(members));
    transcript_line(transcript, "n%llu  members in force: %s", ULL(node->id), members);
}

static void print_drain(struct transcript *transcript, const struct raft_event *event, raft_id id)
{
    if (event->node == RAFT_NOBODY) {
        transcript_line(transcript, "n%llu  asks its program to stop within %.0f ms: it leaves",
                        ULL(id), ms(event->left));
    } else {
        transcript_line(transcript,
                        "n%llu  asks its program to stop within %.0f ms: n%llu shall lead", ULL(id),
                        ms(event->left), ULL(event->node));
    }
}

static void print_event(struct transcript *transcript, const struct node *node,
                        const struct raft_event *event)
{
    switch (event->type) {
    case RAFT_EV_ROLE:
        transcript_line(transcript, "n%llu  is %s", ULL(node->id), raft_role_name(event->role));
        break;
    case RAFT_EV_LEADER:
        if (event->node != RAFT_NOBODY && event->node != node->id) {
            transcript_line(transcript, "n%llu  follows n%llu/%llu", ULL(node->id),
                            ULL(event->node), ULL(event->incarnation));
        }
        break;
    case RAFT_EV_LOST:
        transcript_line(transcript, "n%llu  lost epoch %llu: %s", ULL(node->id), ULL(event->term),
                        raft_loss_name(event->loss));
        break;
    case RAFT_EV_ELECTION_FAILED:
        transcript_line(transcript, "n%llu  has not won term %llu", ULL(node->id),
                        ULL(event->term));
        break;
    case RAFT_EV_JEOPARDY:
        transcript_line(transcript, "n%llu  in jeopardy: %.0f ms of the lease are left",
                        ULL(node->id), ms(event->left));
        break;
    case RAFT_EV_PROOF_ACCEPTED:
    case RAFT_EV_PROOF_IGNORED:
        transcript_line(transcript, "n%llu  %s the proof by %s about n%llu/%llu", ULL(node->id),
                        event->type == RAFT_EV_PROOF_ACCEPTED ? "accepts" : "ignores",
                        raft_proof_name(event->proof_kind), ULL(event->node),
                        ULL(event->incarnation));
        break;
    case RAFT_EV_MEMBERSHIP:
        print_membership(transcript, node);
        break;
    case RAFT_EV_DRAIN:
        print_drain(transcript, event, node->id);
        break;
    case RAFT_EV_TRANSFER_FAILED:
        transcript_line(transcript, "n%llu  leads on: n%llu did not catch up", ULL(node->id),
                        ULL(event->node));
        break;
    case RAFT_EV_SNAPSHOT_REFUSED:
        transcript_line(transcript, "n%llu  learns that n%llu cannot decode the snapshot",
                        ULL(node->id), ULL(event->node));
        break;
    default: /* the other events repeat what a line above says already */
        break;
    }
}

void transcript_update(struct cluster *cluster, struct node *node, const struct raft_update *update)
{
    struct transcript *transcript = cluster->observer;

    transcript->sent = 0;
    print_lease(transcript, node, &update->lease);
    for (size_t i = 0; i < update->event_count; i++) {
        print_event(transcript, node, &update->events[i]);
    }
    print_messages(transcript, node, update, false);
    print_write(transcript, node, update->write);
    print_messages(transcript, node, update, true);
    print_applied(transcript, node, update);
}

/* The commands of a transcript. A duration is written "400ms", a member "n3", "n3:learner" or
 * "n3:weight=2:priority=1", an incarnation "n1/2".
 *
 *   group MEMBER…             the first members; a time of 5 ms from node to node; settings "lan"
 *   spare NODE…               nodes that are no members yet
 *   preferred_stable TIME     a setting
 *   start [NODE…]             all members, or these nodes
 *   hide KIND…, show KIND…    leaves lines out: a type of message, "lease", "stores", "applies"
 *   run TIME                  lets time pass
 *   until leader              lets time pass until one node leads
 *   settle                    the same and 300 ms more, without a line of output
 *   crash NODE, restart NODE, cut NODE, mend NODE
 *   lose COUNT TYPE [FROM TO] the next messages of that type are lost; "-" is any node
 *   propose NODE TEXT, compact NODE TEXT, read NODE
 *   transfer NODE to NODE|best, drained NODE, cordon NODE
 *   change NODE to MEMBER…    a change of members, asked of that leader
 *   certificate NODE/N [NODE…]  the guardian's, to these nodes, or to all that are up
 *   send FROM TO TYPE TERM INDEX TERM  a request for votes, or a heartbeat, of any sender
 *   status                    one line for each node
 */
#include "transcript.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 20 };

struct command {
    const char *name;
    int line;
    char *words[WORDS_MAX]; /* words[0] is the command's name */
    size_t count;
};

static void refuse(const struct command *command, const char *why)
{
    fail_msg("%s:%d: %s: %s", command->name, command->line, command->words[0], why);
}

static const char *word(const struct command *command, size_t place)
{
    if (place >= command->count) {
        refuse(command, "a word is missing");
    }
    return command->words[place];
}

static raft_id id_of(const struct command *command, const char *text)
{
    raft_id id = text[0] == 'n' ? strtoull(text + 1, NULL, 10) : RAFT_NOBODY;

    if (id == RAFT_NOBODY && strcmp(text, "-") != 0 && strcmp(text, "best") != 0) {
        refuse(command, "no node");
    }
    return id;
}

static raft_id node_at(const struct command *command, size_t place)
{
    return id_of(command, word(command, place));
}

static int64_t time_at(const struct command *command, size_t place)
{
    char *unit;
    long long value = strtoll(word(command, place), &unit, 10);

    if (strcmp(unit, "ms") != 0) {
        refuse(command, "a time is written as 400ms");
    }
    return value;
}

/* "n3:learner:weight=2" */
static void take_member(const struct command *command, const char *text, struct raft_member *ret)
{
    const char *more = text;

    *ret = (struct raft_member){.id = id_of(command, text), .weight = 1};
    (void)snprintf(ret->name, sizeof(ret->name), "n%llu", (unsigned long long)ret->id);
    while ((more = strchr(more, ':'))) {
        more++;
        if (strncmp(more, "learner", 7) == 0) {
            ret->kind = RAFT_LEARNER;
            ret->weight = 0;
        } else if (strncmp(more, "witness", 7) == 0) {
            ret->kind = RAFT_WITNESS;
        } else if (strncmp(more, "weight=", 7) == 0) {
            ret->weight = (uint32_t)strtoul(more + 7, NULL, 10);
        } else if (strncmp(more, "priority=", 9) == 0) {
            ret->priority = (int32_t)strtol(more + 9, NULL, 10);
        } else {
            refuse(command, "an unknown property of a member");
        }
    }
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void do_group(struct transcript *t, const struct command *command)
{
    t->cluster = cluster_new(command->count - 1);
    t->cluster->observe = transcript_update;
    t->cluster->filter = transcript_filter;
    t->cluster->observer = t;
    t->cluster->delay = SPAN_MS(5);
    assert_int_equal(raft_settings_preset(&t->cluster->settings, "lan", NULL), 0);
    t->begin = t->shown = t->cluster->now;
    for (size_t i = 1; i < command->count; i++) {
        take_member(command, command->words[i], &t->cluster->first.members[i - 1]);
    }
}

static void do_spare(struct transcript *t, const struct command *command)
{
    for (size_t i = 1; i < command->count; i++) {
        raft_id id = node_at(command, i);
        if (id != t->cluster->count + 1 || id > CLUSTER_MAX) {
            refuse(command, "ids are given without a gap");
        }
        t->cluster->nodes[t->cluster->count++].id = id;
    }
}

static void do_preferred_stable(struct transcript *t, const struct command *command)
{
    t->cluster->settings.preferred_stable = SPAN_MS(time_at(command, 1));
}

static void do_start(struct transcript *t, const struct command *command)
{
    for (raft_id id = 1; id <= t->cluster->first.count && command->count == 1; id++) {
        node_start(t->cluster, id);
    }
    for (size_t i = 1; i < command->count; i++) {
        node_start(t->cluster, node_at(command, i));
    }
}

static void do_hide(struct transcript *t, const struct command *command)
{
    for (size_t i = 1; i < command->count; i++) {
        if (t->hidden_count == TRANSCRIPT_HIDDEN_MAX) {
            refuse(command, "too many kinds");
        }
        (void)snprintf(t->hidden[t->hidden_count++], TRANSCRIPT_WORD, "%s", word(command, i));
    }
}

static void do_show(struct transcript *t, const struct command *command)
{
    for (size_t i = 1; i < command->count; i++) {
        for (size_t j = 0; j < t->hidden_count; j++) {
            if (strcmp(t->hidden[j], command->words[i]) == 0) {
                t->hidden[j][0] = '\0';
            }
        }
    }
}

static void pass(struct transcript *t, int64_t ms)
{
    for (int64_t i = 0; i < ms; i++) {
        cluster_run(t->cluster, 1); /* by the millisecond: messages arrive between deadlines */
    }
}

static void do_run(struct transcript *t, const struct command *command)
{
    pass(t, time_at(command, 1));
}

static void do_until(struct transcript *t, const struct command *command)
{
    if (strcmp(word(command, 1), "leader") != 0) {
        refuse(command, "until what?");
    }
    (void)cluster_elect(t->cluster);
}

static void do_settle(struct transcript *t, const struct command *command)
{
    t->is_silent = true;
    (void)cluster_elect(t->cluster);
    pass(t, 300);
    t->is_silent = false;
}

static void do_crash(struct transcript *t, const struct command *command)
{
    node_crash(t->cluster, node_at(command, 1));
    t->leases[node_at(command, 1) - 1].held = false;
}

static void do_cut(struct transcript *t, const struct command *command)
{
    node_of(t->cluster, node_at(command, 1))->is_cut = true;
}

static void do_mend(struct transcript *t, const struct command *command)
{
    node_of(t->cluster, node_at(command, 1))->is_cut = false;
}

static void do_lose(struct transcript *t, const struct command *command)
{
    t->losses.left = strtoull(word(command, 1), NULL, 10);
    (void)snprintf(t->losses.type, sizeof(t->losses.type), "%s", word(command, 2));
    t->losses.from = command->count > 3 ? node_at(command, 3) : RAFT_NOBODY;
    t->losses.to = command->count > 3 ? node_at(command, 4) : RAFT_NOBODY;
}

static void show_result(struct transcript *t, raft_id id, int r)
{
    if (r != 0) {
        transcript_line(t, "n%llu  refuses: %s", (unsigned long long)id, baton_strerror(r));
    }
}

static void do_propose(struct transcript *t, const struct command *command)
{
    raft_id id = node_at(command, 1);
    show_result(t, id, node_propose(t->cluster, id, word(command, 2)));
}

static void do_compact(struct transcript *t, const struct command *command)
{
    raft_id id = node_at(command, 1);
    const char *state = word(command, 2);
    struct raft_input input = {.type = RAFT_IN_COMPACT};

    input.compact.index = node_status(t->cluster, id).applied_index;
    input.compact.data = state;
    input.compact.bytes = strlen(state);
    show_result(t, id, node_step(t->cluster, id, &input));
}

static void do_read(struct transcript *t, const struct command *command)
{
    struct raft_input input = {.type = RAFT_IN_READ, .read = {.context = 1}};
    show_result(t, node_at(command, 1), node_step(t->cluster, node_at(command, 1), &input));
}

static void do_transfer(struct transcript *t, const struct command *command)
{
    raft_id id = node_at(command, 1);
    show_result(t, id, node_transfer(t->cluster, id, node_at(command, 3), false));
}

static void do_drained(struct transcript *t, const struct command *command)
{
    struct raft_input input = {.type = RAFT_IN_DRAINED};
    show_result(t, node_at(command, 1), node_step(t->cluster, node_at(command, 1), &input));
}

static void do_cordon(struct transcript *t, const struct command *command)
{
    struct raft_input input = {.type = RAFT_IN_ELIGIBLE, .eligible = false};
    show_result(t, node_at(command, 1), node_step(t->cluster, node_at(command, 1), &input));
}

static void do_change(struct transcript *t, const struct command *command)
{
    struct raft_member members[CLUSTER_MAX];
    struct raft_configuration wanted = {.members = members, .count = command->count - 3};
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &wanted};
    struct baton_error error = {0};
    raft_id id = node_at(command, 1);
    int r;

    for (size_t i = 0; i < wanted.count; i++) {
        take_member(command, word(command, i + 3), &members[i]);
    }
    r = raft_check_change(node_of(t->cluster, id)->raft, &wanted, &error);
    if (r != 0) {
        transcript_line(t, "n%llu  refuses: %s", (unsigned long long)id, error.message);
    } else {
        show_result(t, id, node_step(t->cluster, id, &input));
    }
}

static void do_certificate(struct transcript *t, const struct command *command)
{
    const char *slash = strchr(word(command, 1), '/');
    struct raft_proof proof = {.node = node_at(command, 1),
                               .incarnation = slash ? strtoull(slash + 1, NULL, 10) : 0,
                               .through_term = RAFT_TERM_FOREVER};

    for (raft_id id = 1; id <= t->cluster->count && command->count == 2; id++) {
        if (node_of(t->cluster, id)->raft) {
            node_proof(t->cluster, id, RAFT_PROOF_GUARDIAN, proof, RAFT_NOBODY);
        }
    }
    for (size_t i = 2; i < command->count; i++) {
        node_proof(t->cluster, node_at(command, i), RAFT_PROOF_GUARDIAN, proof, RAFT_NOBODY);
    }
}

static void do_send(struct transcript *t, const struct command *command)
{
    struct raft_message message = {.from = node_at(command, 1),
                                   .to = node_at(command, 2),
                                   .incarnation = 1,
                                   .term = strtoull(word(command, 4), NULL, 10)};

    for (int type = RAFT_MSG_PRE_VOTE; type <= RAFT_MSG_READ_REPLY; type++) {
        if (strcmp(raft_message_name(type), word(command, 3)) == 0) {
            message.type = type;
        }
    }
    if (message.type == RAFT_MSG_VOTE || message.type == RAFT_MSG_PRE_VOTE) {
        message.vote.last_index = strtoull(word(command, 5), NULL, 10);
        message.vote.last_term = strtoull(word(command, 6), NULL, 10);
    } else if (message.type == RAFT_MSG_HEARTBEAT) {
        message.heartbeat.lease = t->cluster->settings.lease;
    } else {
        refuse(command, "only votes, pre-votes and heartbeats can be sent");
    }
    node_message(t->cluster, &message);
}

static void do_status(struct transcript *t, const struct command *command)
{
    for (raft_id id = 1; id <= t->cluster->count; id++) {
        struct raft_status s;
        if (!node_of(t->cluster, id)->raft) {
            transcript_line(t, "n%llu  down", (unsigned long long)id);
            continue;
        }
        s = node_status(t->cluster, id);
        transcript_line(t, "n%llu  %s, term %llu, log %llu to %llu, committed %llu%s",
                        (unsigned long long)id, raft_role_name(s.role), (unsigned long long)s.term,
                        (unsigned long long)s.first_index, (unsigned long long)s.last_index,
                        (unsigned long long)s.commit_index, s.eligible ? "" : ", cordoned");
    }
}

static const struct {
    const char *name;
    void (*run)(struct transcript *, const struct command *);
} commands[] = {
    {"group", do_group},     {"spare", do_spare},
    {"start", do_start},     {"preferred_stable", do_preferred_stable},
    {"hide", do_hide},       {"show", do_show},
    {"run", do_run},         {"until", do_until},
    {"settle", do_settle},   {"crash", do_crash},
    {"restart", do_start},   {"cut", do_cut},
    {"mend", do_mend},       {"lose", do_lose},
    {"propose", do_propose}, {"compact", do_compact},
    {"read", do_read},       {"transfer", do_transfer},
    {"drained", do_drained}, {"cordon", do_cordon},
    {"change", do_change},   {"certificate", do_certificate},
    {"send", do_send},       {"status", do_status},
};

/* ---- The script ------------------------------------------------------------------------------ */

static void carry_out(struct transcript *transcript, struct command *command, char *text)
{
    char *rest = NULL;

    for (char *w = strtok_r(text, " \n", &rest); w && command->count < WORDS_MAX;
         w = strtok_r(NULL, " \n", &rest)) {
        command->words[command->count++] = w;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && command->count > 0; i++) {
        if (strcmp(commands[i].name, command->words[0]) == 0) {
            if (!transcript->cluster && commands[i].run != do_group) {
                refuse(command, "the first command is group");
            }
            commands[i].run(transcript, command);
            return;
        }
    }
    fail_msg("%s:%d: no such command", command->name, command->line);
}

void transcript_play(const char *name, FILE *script, FILE *out)
{
    struct transcript *transcript = calloc(1, sizeof(*transcript));
    char line[512];

    assert_non_null(transcript);
    transcript->out = out;
    for (int number = 1; fgets(line, sizeof(line), script); number++) {
        struct command command = {.name = name, .line = number};
        if (line[0] == '>') {
            (void)fputs(line, out);
            carry_out(transcript, &command, line + 1);
            if (transcript->cluster) { /* the first line of an output says when it was */
                transcript->shown = INSTANT_PAST;
            }
        } else if (line[0] == '#' || line[0] == '\n') {
            (void)fputs(line, out);
        }
    }
    if (transcript->cluster) {
        cluster_free(transcript->cluster);
    }
    free(transcript);
}

#include "sim/sessions/checks.h"

#include "sim/sessions/acting.h"
#include "sim/sessions/trace.h"

#include <string.h>

static void check_one(struct assembly *assembly, const struct assembly_process *process,
                      int election, uint64_t session, uint64_t epoch)
{
    const struct session_election *there =
        sessions_election(assembly->truth, assembly_name(election));
    uint64_t holder = there && there->holder ? there->holder->session->id : 0;

    if (holder == 0 || holder != session || there->epoch != epoch) {
        assembly_violated(assembly, "two-act",
                          "p%d acts in %s by session %llu in epoch %llu; session %llu holds it in "
                          "epoch %llu",
                          process->number, assembly_name(election), (unsigned long long)session,
                          (unsigned long long)epoch, (unsigned long long)holder,
                          (unsigned long long)(there ? there->epoch : 0));
    }
    if (epoch <= process->of[election].given_up) {
        assembly_violated(assembly, "taken-again", "p%d acts in %s in epoch %llu, given up before",
                          process->number, assembly_name(election), (unsigned long long)epoch);
    }
    if (epoch < assembly->highest[election]) {
        assembly_violated(assembly, "epoch-back", "p%d acts in %s in epoch %llu after %llu",
                          process->number, assembly_name(election), (unsigned long long)epoch,
                          (unsigned long long)assembly->highest[election]);
    }
    assembly->highest[election] = epoch;
}

void assembly_check_acting(struct assembly *assembly)
{
    int acting[ASSEMBLY_ELECTIONS] = {0};
    uint64_t epoch, session;

    for (size_t i = 0; i < assembly->profile.processes; i++) {
        for (int election = 0; election < ASSEMBLY_ELECTIONS; election++) {
            epoch = process_acts(assembly, &assembly->processes[i], election, &session);
            if (epoch != 0) {
                check_one(assembly, &assembly->processes[i], election, session, epoch);
            }
            if (epoch != 0 && acting[election]++ > 0) {
                assembly_violated(assembly, "two-act", "p%zu acts in %s by another one's session",
                                  i, assembly_name(election));
            }
        }
    }
}

void assembly_check_truth(struct assembly *assembly)
{
    const struct session_election *election = NULL;

    while ((election = sessions_next_election(assembly->truth, election))) {
        for (const struct session_contender *at = election->first; at && !election->holder;
             at = at->next) {
            if (at->is_eligible) {
                assembly_violated(assembly, "idle", "no session holds %s, and session %llu could",
                                  election->name, (unsigned long long)at->session->id);
            }
        }
    }
}

void assembly_note_truth(void *userdata, const struct session_change *change)
{
    struct assembly *assembly = userdata;
    const struct session_election *election;

    if (change->type != SESSION_HELD) {
        return;
    }
    election = sessions_election(assembly->truth, change->election);
    if (change->epoch != assembly->length) {
        assembly_violated(assembly, "epoch-not-new", "%s is granted in epoch %llu by entry %llu",
                          change->election, (unsigned long long)change->epoch,
                          (unsigned long long)assembly->length);
    }
    if (!election->holder->is_eligible) {
        assembly_violated(assembly, "not-eligible", "%s is granted to session %llu, an observer",
                          change->election, (unsigned long long)change->session);
    }
}

void assembly_check_renewed(struct assembly *assembly, const struct assembly_agent *agent,
                            uint64_t session)
{
    if (assembly->has_expired[session]) {
        assembly_violated(assembly, "renewed-after-end",
                          "a%d renews session %llu, which an entry has ended", agent->number,
                          (unsigned long long)session);
    }
}

void assembly_check_fenced(struct assembly *assembly, const struct assembly_agent *agent)
{
    const struct session *at = NULL;

    while (agent->keeper.is_keeping && (at = sessions_next(agent->sessions, at))) {
        if (at->attached <= agent->fenced[at->node - 1] && !at->is_ending) {
            assembly_violated(assembly, "fenced-goes-on",
                              "a%d has fenced a%d, and does not end session %llu of it",
                              agent->number, (int)at->node - 1, (unsigned long long)at->id);
        }
    }
}

void assembly_check_same(struct assembly *assembly, const struct assembly_agent *agent)
{
    struct buffer ours, theirs;
    bool is_same;

    buffer_init(&ours, 1 << 22);
    buffer_init(&theirs, 1 << 22);
    sessions_snapshot(assembly->truth, &ours);
    sessions_snapshot(agent->sessions, &theirs);
    is_same = !ours.failed && !theirs.failed && ours.bytes == theirs.bytes &&
              memcmp(ours.data, theirs.data, ours.bytes) == 0;
    buffer_fini(&ours);
    buffer_fini(&theirs);
    if (!is_same) {
        assembly_violated(assembly, "states-differ", "a%d has another state after entry %llu",
                          agent->number, (unsigned long long)agent->applied);
    }
}

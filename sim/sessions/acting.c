#include "sim/sessions/acting.h"

instant process_local(const struct assembly *assembly, const struct assembly_process *process)
{
    return drift_local(&assembly->agents[process->host].clock, assembly->now);
}

static bool has_session(const struct assembly *assembly, const struct assembly_process *process)
{
    return session_client_lease(process->client).is_held &&
           instant_before(process_local(assembly, process),
                          session_client_lease(process->client).end);
}

uint64_t process_acts(const struct assembly *assembly, const struct assembly_process *process,
                      int election, uint64_t *ret_session)
{
    const struct assembly_memory *memory = &process->of[election];
    uint64_t epoch =
        process->client ? session_client_epoch(process->client, assembly_name(election)) : 0;

    if (!process->is_up) {
        return 0;
    }
    if (epoch != 0 && (has_session(assembly, process) || SESSION_MUTANT(HOLDS_WITHOUT_SESSION))) {
        *ret_session = session_client_lease(process->client).session;
        return epoch;
    }
    *ret_session = process->session;
    return instant_before(process_local(assembly, process), memory->end) ? memory->epoch : 0;
}

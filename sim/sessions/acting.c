#include "sim/sessions/acting.h"

instant process_local(const struct assembly *assembly, const struct assembly_process *process)
{
    return drift_local(&assembly->agents[process->host].clock, assembly->now);
}

bool process_has_session(const struct assembly *assembly, const struct assembly_process *process)
{
    return session_client_lease(process->client).is_held &&
           instant_before(process_local(assembly, process),
                          session_client_lease(process->client).end);
}

bool process_acts(const struct assembly *assembly, const struct assembly_process *process,
                  int election)
{
    return process->is_up && session_client_epoch(process->client, assembly_name(election)) != 0 &&
           (process_has_session(assembly, process) || SESSION_MUTANT(HOLDS_WITHOUT_SESSION));
}

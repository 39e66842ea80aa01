#include "sim/sessions/acting.h"

instant process_local(const struct assembly *assembly, const struct assembly_process *process)
{
    return drift_local(&assembly->agents[process->host].clock, assembly->now);
}

bool process_has_session(const struct assembly *assembly, const struct assembly_process *process)
{
    return process->update.held &&
           instant_before(process_local(assembly, process), process->update.end);
}

bool process_acts(const struct assembly *assembly, const struct assembly_process *process,
                  int election)
{
    return process->is_up && process->holdings[election].epoch != 0 &&
           (process_has_session(assembly, process) || ASSEMBLY_MUTANT(HOLDS_WITHOUT_SESSION));
}
